"""The lake does what a dict would, whichever of two versions does each of the operations: this one, in process, and the
one before, in a process of its own."""

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize

import lakelib
from lakelib import Lake
from lakelib.model.gate import Outcome
from lakelib.model.table import TableRef
from lakelib.specs.suite import Suite, suite_text
from tests.property.lake_values import WIDER
from tests.property.test_lake_machine import RUNS, LakeMachine, run_machine
from tests.releases.client import OldLake, running, seen
from tests.releases.released import releases
from tests.releases.worker import plain


@pytest.fixture(scope="module")
def lakes(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, OldLake]]:
    """One lake, opened by both versions: the older one has made it, and it was migrated since."""
    release, warehouse = releases()[-1], tmp_path_factory.mktemp("warehouse")
    release.restore_lake(module_database_url, warehouse)
    lakelib.migrate(warehouse.as_uri(), module_database_url)
    code = release.unpack_code(tmp_path_factory.mktemp("code"))
    with (
        lakelib.connect(warehouse.as_uri(), module_database_url) as new,
        running(code, warehouse.as_uri(), module_database_url) as old,
    ):
        old.create_namespace("m")
        yield new, old


def test_two_versions_together_do_what_a_dict_does(lakes: tuple[Lake, OldLake]) -> None:
    taken, steps = [0, 0], list[str]()
    shared: Any = SharedLake(*lakes, Turns(taken))
    run_machine(lambda: TwoVersionsMachine(shared, ("fixed", "append", "sequenced"), steps), RUNS)
    print(f"{len(steps)} steps, {taken} turns")
    assert all(taken)


_KNOWN_WIDER = {old: new for old, new in WIDER.items() if new != "decimal(18,4)"}


class TwoVersionsMachine(LakeMachine):
    rolls_back = False  # the older one does not know what a rollback has put where it has read
    has_consumers = False  # nor, before an expiry, what they hold
    replaces = False
    changes_of_columns = ("add", "drop", "rename", "widen", "swap")  # nor comments, nor decimals of another scale
    wider = _KNOWN_WIDER

    @initialize(data=st.data())
    def create_tables(self, data: st.DataObject) -> None:
        shared: Any = self.lake
        shared.turns.begin(data.draw(st.integers(0, 2**16), label="turns"))
        super().create_tables(data)


class Turns:
    """Whose turn it is: by chance, else each would always do what it has done before. A run that is done again has the
    same turns: what comes next may depend on who did what came before."""

    def __init__(self, taken: list[int]) -> None:
        """`taken` is counted up."""
        self._chance = random.Random(1)
        self._taken = taken

    def begin(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def choose(self, new: Any, old: Any) -> Any:
        place = self._chance.randrange(2)
        self._taken[place] += 1
        return (new, old)[place]


class SharedLake:
    """A lake, each method of which is carried out by one of two versions."""

    def __init__(self, new: Lake, old: OldLake, turns: Turns) -> None:
        self.new, self.old, self.turns = new, old, turns
        self.runtime = new.runtime

    def create_table(self, name: str, *args: Any, **options: Any) -> "SharedTable":
        self._choose().create_table(name, *args, **options)
        return SharedTable(self, name, self.turns)

    def drop_table(self, name: str) -> None:
        self._choose().drop_table(name)

    def vacuum(self, **options: Any) -> None:
        self._choose().vacuum(**options)

    def transaction(self) -> "SharedTransaction":
        return SharedTransaction(self)

    def transact(self, commits: Sequence["SharedCommit"]) -> Sequence[Any]:
        if (chosen := self._choose()) is self.old:
            transacted: list[Any] = self.old.transact([commit.id for commit in commits])
            return transacted
        with chosen.transaction() as transaction:
            for commit in commits:
                transaction.add(self.new.staged(commit.id))
        snapshots: list[Any] = transaction.snapshots
        return snapshots

    def _choose(self) -> Any:
        return self.turns.choose(self.new, self.old)


class SharedTransaction:
    def __init__(self, lake: SharedLake) -> None:
        self._lake = lake
        self._commits: list[SharedCommit] = []
        self.snapshots: Sequence[Any] = ()

    def add(self, commit: "SharedCommit") -> None:
        self._commits.append(commit)

    def __enter__(self) -> "SharedTransaction":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.snapshots = self._lake.transact(self._commits)


class SharedTable:
    """Both have handles that they keep."""

    def __init__(self, lake: SharedLake, name: str, turns: Turns) -> None:
        self.name = name
        self._lake, self._turns = lake, turns
        self._new, self._old = lake.new.table(name), lake.old.table(name)
        self.location = self._new.location

    def expire(self, *, dry_run: bool = False, **options: Any) -> Any:
        """By the version that was asked before what would go."""
        if dry_run:
            self._expiring = self._turns.choose(self._new, self._old)
        return seen(plain(self._expiring.expire(dry_run=dry_run, **options)))

    def changes(self, **options: Any) -> Any:
        """Of what both have written; the older one does not know them."""
        return self._new.changes(**options)

    def diff(self, before: int, after: int) -> Any:
        return self._new.diff(before, after)

    @property
    def _ref(self) -> TableRef:
        """By which masks are looked at; the older one makes none."""
        return self._new._ref

    @property
    def primary_key(self) -> list[str]:
        return self._new.primary_key

    @property
    def partition_by(self) -> list[str]:
        return self._new.partition_by

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            found = getattr(self._turns.choose(self._new, self._old), method)(*args, **options)
            return SharedCommit(self._lake, str(found.id), self._turns) if method.startswith("stage_") else found

        return call


class SharedCommit:
    def __init__(self, lake: SharedLake, commit_id: str, turns: Turns) -> None:
        self.id = commit_id
        self._turns = turns
        self._new = lake.new.staged(commit_id)
        self._old = lake.old.commit(commit_id)

    @property
    def state(self) -> str:
        found: str = self._turns.choose(self._new, self._old).state
        return found

    def judge(self, suite: Suite) -> Any:
        if self._turns.choose(True, False):
            return self._new.judge(suite)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "gate.yaml")
            path.write_text(suite_text(suite))
            return SimpleNamespace(outcome=Outcome(self._old.judge(str(path)).outcome))

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args, **options: getattr(self._turns.choose(self._new, self._old), method)(*args, **options)
