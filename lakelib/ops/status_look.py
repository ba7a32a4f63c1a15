"""What the catalog says of all tables at once, for use cases that tell how they are doing: a few statements, whatever
their number."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime

from lakelib.catalog import status
from lakelib.catalog.status import Asked, Holdings, TableHead
from lakelib.dataclass import dataclass
from lakelib.model.status import WaitingCommit
from lakelib.model.table import TableInfo
from lakelib.ops.runtime import Runtime
from lakelib.plan.due import Keying, is_key
from lakelib.specs.partition_keys import Step
from lakelib.specs.table_spec import TableSpec

PARTITION_BY = "partition_by"
"""The property of a run's commit that says how its table is cut by time: `day dt`, or `none`."""
_STEPS: tuple[Step, ...] = ("hour", "day", "month", "none")
_EMPTY = Holdings(head_id=0)


@dataclass(frozen=True, slots=True)
class Memory:
    """What tables hold at heads that were seen before: whoever looks again and again asks for what has moved since. May
    be shared between threads."""

    holdings: dict[int, Holdings] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the catalog has said, and the specs. By the tables' names."""

    at: datetime
    heads: Mapping[str, TableHead]
    keyings: Mapping[str, Keying]
    """How tables are cut by time, if that is known."""
    holdings: Mapping[str, Holdings]
    waiting: Mapping[str, Sequence[WaitingCommit]]
    specs: Mapping[str, TableSpec]

    @property
    def names(self) -> list[str]:
        """Of the tables that are there, and of those that specs name."""
        return sorted({*self.heads, *self.specs})

    def holdings_of(self, name: str) -> Holdings:
        return self.holdings.get(name, _EMPTY)

    def runs_of(self, name: str) -> Mapping[str, int]:
        """The newest snapshot of each partition that runs have published, by the keys that the table has."""
        keying, runs = self.keyings.get(name), self.holdings_of(name).runs
        return {key: runs[key] for key in runs if keying is not None and is_key(keying.every, key)}


def look_around(runtime: Runtime, specs: Iterable[TableSpec], memory: Memory) -> Look:
    """Commits that wait are looked up first: one that is published meanwhile is found among what was published."""
    by_table = {spec.table: spec for spec in specs}
    waiting: dict[str, list[WaitingCommit]] = defaultdict(list)
    for commit in status.load_waiting(runtime.catalog):
        waiting[commit.table].append(commit)
    heads = {head.info.full_name: head for head in status.load_heads(runtime.catalog)}
    keyings = {name: keying for name, head in heads.items() if (keying := _keying(head, by_table.get(name)))}
    asked = [Asked(info=head.info, place=_place(keyings.get(name))) for name, head in heads.items()]
    known = {each.info.id: held for each in asked if (held := memory.holdings.get(each.info.id)) and _fits(held, each)}
    known |= status.load_holdings(runtime.catalog, [each for each in asked if each.info.id not in known])
    for gone in {*memory.holdings} - {*known}:
        memory.holdings.pop(gone, None)
    memory.holdings.update(known)
    return Look(
        at=next((head.info.loaded_at for head in heads.values()), datetime.now(UTC)),
        heads=heads,
        keyings=keyings,
        holdings={name: known[head.info.id] for name, head in heads.items()},
        waiting=waiting,
        specs=by_table,
    )


def partition_by_text(spec: TableSpec) -> str:
    """The property of the spec's commits."""
    return spec.partition.every if spec.partition.column is None else f"{spec.partition.every} {spec.partition.column}"


def keying_by(table: TableInfo, every: Step, column: str) -> Keying:
    """Without a type where the table has no such partition column."""
    for place, known in enumerate(table.partition_by):
        if every != "none" and known.name.casefold() == column.casefold():
            return Keying(every=every, place=place, type=known.type)
    return Keying(every=every)


def _keying(head: TableHead, spec: TableSpec | None) -> Keying | None:
    """As the spec says, else as the newest run has said."""
    said = partition_by_text(spec) if spec is not None else (head.run_properties or {}).get(PARTITION_BY)
    every, _, column = (said or "").partition(" ")
    step = next((each for each in _STEPS if each == every), None)
    return None if step is None else keying_by(head.info, step, column)


def _place(keying: Keying | None) -> int:
    """As the catalog counts, from one."""
    return 1 + (0 if keying is None else keying.place)


def _fits(held: Holdings, asked: Asked) -> bool:
    return (held.head_id, held.place) == (asked.info.head_id, asked.place)
