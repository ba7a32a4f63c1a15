"""Changes are what a dict would say: random histories, each pair of snapshots held against the states then."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake, Table
from lakelib.errors import ExpiredError

RUNS = int(os.environ.get("LAKE_CHANGES_RUNS", "2"))
"""Histories of each kind of table."""
STEPS = 12
_PAIRS = 10
"""Of each history so many pairs of snapshots."""
_SCHEMA = pa.schema(
    [("k", pa.int64()), ("p", pa.string()), ("s", pa.int64()), ("v", pa.float64()), ("t", pa.list_(pa.string()))]
)
_KINDS: dict[str, dict[str, Any]] = {
    "one bucket": {"primary_key": ["k"]},
    "buckets": {"primary_key": ["k"], "partition_by": ["p"], "buckets": 4},
    "dynamic": {"primary_key": ["k"], "partition_by": ["p"], "buckets": "dynamic"},
    "text key": {"primary_key": ["p", "k"], "buckets": 2},
    "sequence": {"primary_key": ["k"], "partition_by": ["p"], "sequence_by": ["s"], "buckets": 2},
    "append": {"partition_by": ["p"]},
}
_NUMBERS = count()

Rows = list[dict[str, Any]]
State = dict[Any, tuple[Any, ...]]


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakelib.connect(warehouse=str(tmp_path_factory.mktemp("lake")), catalog=module_catalog_url) as lake:
        lake.create_namespace("c")
        yield lake


@dataclass
class Past:
    """A table and what it held at each snapshot: rows by key, or how many there are of each."""

    table: Table
    kind: str
    random: Random
    states: dict[int, Any] = field(default_factory=lambda: {0: {}})
    kept: list[int] = field(default_factory=list)

    @property
    def definition(self) -> Mapping[str, Any]:
        return _KINDS[self.kind]

    def key_of(self, row: Mapping[str, Any]) -> Any:
        names = (*self.definition.get("primary_key", ()), *self.definition.get("partition_by", ()))
        return tuple(row[name] for name in dict.fromkeys(names))

    def note(self) -> None:
        head = self.table.head
        if head is None or head.id in self.states:
            return
        rows = self.table.scan(columns=["k", "p", "s", "v", "t", "_commit"]).to_arrow().to_pylist()
        self.states[head.id] = self.state_of(rows)
        self.kept.append(head.id)

    def state_of(self, rows: Rows) -> Any:
        if self.kind == "append":
            return Counter(values_of(row) for row in rows)
        return {self.key_of(row): values_of(row) for row in rows}


def values_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(_plain(row[name]) for name in ("k", "p", "s", "v", "t", "_commit"))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("kind", _KINDS)
def test_between_any_two_snapshots_the_changes_are_the_difference(lake: Lake, kind: str, run: int) -> None:
    past = _past(lake, kind, Random(f"{kind} {run}"))
    for after, until in _pairs(past):
        _check_latest(past, after, until)
        _check_net(past, after, until)
        _check_all(past, after, until)
        _check_net(past, until, after, past.table.diff(until, after))


@pytest.mark.parametrize("run", range(max(2, RUNS // 2)))
@pytest.mark.parametrize("kind", _KINDS)
def test_after_an_expiry_the_changes_are_right_or_an_error_that_says_from_where(
    lake: Lake, kind: str, run: int
) -> None:
    past = _past(lake, kind, Random(f"expiring {kind} {run}"))
    chosen = past.random.sample(past.kept, k=min(3, len(past.kept)))
    for snapshot_id in chosen:
        past.table.tag(f"t{snapshot_id}", at=snapshot_id)
    past.table.expire(keep_last=past.random.choice((1, 2, 4)))
    lake.vacuum()
    left = {snapshot.id for snapshot in past.table.history()}
    for after, until in _pairs(past):
        for check in (_check_latest, _check_net, _check_all):
            try:
                check(past, after, until)
            except ExpiredError as error:
                assert until not in left or after not in {0, *left} or check is _check_all
                _check_remedy(past, check, after, until, error)
            else:
                assert until in left


def _pairs(past: Past) -> list[tuple[int, int]]:
    pairs = [(after, until) for after in [0, *past.kept] for until in past.kept if after <= until]
    return past.random.sample(pairs, k=min(_PAIRS, len(pairs)))


def _check_remedy(past: Past, check: Callable[..., None], after: int, until: int, error: ExpiredError) -> None:
    assert error.kind in ("changes_expired", "snapshot_expired")
    if "from snapshot " in str(error):
        first = int(str(error).split("from snapshot ")[1].split()[0])
        assert first > after
        check(past, first, until)


def _past(lake: Lake, kind: str, random: Random) -> Past:
    name = f"c.t{next(_NUMBERS)}"
    past = Past(lake.create_table(name, _SCHEMA, **_KINDS[kind]), kind, random)
    for _ in range(STEPS):
        _step(past)
        past.note()
    return past


def _rows(past: Past) -> pa.Table:
    random = past.random
    rows = [
        {
            "k": random.randrange(8),
            "p": random.choice("ab"),
            "s": random.randrange(4),
            "v": random.choice((0.0, -0.0, 1.5, float("nan"), None)),
            "t": random.choice(([], ["x"], ["x", "y"], None)),
        }
        for _ in range(random.randrange(1, 7))
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)


def _step(past: Past) -> None:
    table, random = past.table, past.random
    match random.choice(
        ("write", "write", "write", "delete", "keys", "part", "overwrite", "again", "compact", "some", "back")
    ):
        case "write" if past.kind == "append":
            table.append(_rows(past))
        case "write":
            table.upsert(_rows(past))
        case "delete":
            table.delete(f"v = 1.5 and k < {random.randrange(9)}")
        case "keys" if past.kind != "append":
            table.delete_keys(_rows(past).select([*dict.fromkeys((*table.primary_key, *table.partition_by))]))
        case "part":
            table.delete("p = 'a'")
        case "overwrite":
            table.overwrite(_rows(past), random.choice(("all", "dynamic" if table.partition_by else "all")))
        case "again":  # the same rows once more
            if past.kind != "append":
                table.upsert(table.scan().to_arrow())
            else:
                table.overwrite(table.scan().to_arrow())
        case "compact":
            table.compact(full=True)
        case "some":
            table.compact()
        case "back" if past.kept:
            table.rollback(random.choice(past.kept))


# The views


def _check_latest(past: Past, after: int, until: int) -> None:
    rows = past.table.changes(after=after, until=until).to_arrow().to_pylist()
    old, new = past.states[after], past.states[until]
    if past.kind == "append":
        assert _counted(old, rows) == +new
        return
    state = dict(old)
    told = [past.key_of(row) for row in rows]
    assert len(told) == len(set(told))
    for row in rows:
        key = past.key_of(row)
        if row["_op"] == "delete":
            assert (row["v"], row["t"]) == (None, None)
            state.pop(key, None)
        else:
            assert values_of(row) != old.get(key)
            state[key] = values_of(row)
    assert state == new


def _check_net(past: Past, after: int, until: int, changes: Any = None) -> None:
    rows = (changes or past.table.changes(after=after, until=until, view="net")).to_arrow().to_pylist()
    old, new = (_without_commit(past, past.states[at]) for at in (after, until))
    if past.kind == "append":
        gone = Counter(values_of(row)[:-1] for row in rows if row["_change"] == "delete")
        came = Counter(values_of(row)[:-1] for row in rows if row["_change"] == "insert")
        assert (gone, came) == (old - new, new - old)
        return
    expected = []
    for key in old.keys() | new.keys():
        if old.get(key) == new.get(key):
            continue
        if key not in new:
            expected.append(("delete", old[key]))
        elif key not in old:
            expected.append(("insert", new[key]))
        else:
            expected += [("update_before", old[key]), ("update_after", new[key])]
    found = [(row["_change"], values_of(row)[:-1]) for row in rows]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def _without_commit(past: Past, state: Any) -> Any:
    if past.kind == "append":
        counts: Counter[Any] = Counter()
        for values, number in state.items():
            counts[values[:-1]] += number
        return counts
    return {key: values[:-1] for key, values in state.items()}


def _check_all(past: Past, after: int, until: int) -> None:
    rows = past.table.changes(after=after, until=until, view="all").to_arrow().to_pylist()
    commits = [row["_commit"] for row in rows]
    assert commits == sorted(commits)
    assert all(after < commit <= until for commit in commits)
    old, new = past.states[after], past.states[until]
    if past.kind == "append":
        assert _without_commit(past, _counted(old, rows)) == +_without_commit(past, new)
        return
    state = dict(old)
    for row in rows:
        key = past.key_of(row)
        if past.kind == "sequence" and key in state and row["s"] < state[key][2] and row["_op"] == "upsert":
            continue
        if row["_op"] == "delete":
            state.pop(key, None)
        else:
            state[key] = values_of(row)
    assert past.kind == "sequence" or _without_commit(past, state) == _without_commit(past, new)


def _counted(old: Counter[Any], rows: Rows) -> Counter[Any]:
    """The rows that there are after these changes. Deletes name a row by its values: whichever of them goes."""
    state = Counter(old)
    for row in rows:
        values = values_of(row)
        if row["_op"] != "delete":
            state[values] += 1
    for row in rows:
        values = values_of(row)
        if row["_op"] == "delete":
            own = next(kept for kept in state if kept[:-1] == values[:-1] and state[kept] > 0)
            state[own] -= 1
    return +state
