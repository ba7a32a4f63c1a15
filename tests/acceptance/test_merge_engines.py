"""Merge engines from end to end: random histories against the model in plain Python, and what is refused."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Table
from lakelib.model.gate import Outcome
from lakelib.specs.suite import parse_suite
from tests.acceptance.support import Engine, NewTable, SparkEngine, in_process
from tests.conftest import WHOLE_MATRICES
from tests.merge_model import Event, Model

_DDL = "id BIGINT, day STRING, u BIGINT, a BIGINT, b STRING, sa BIGINT, c BIGINT, n BIGINT"
_NAMES = ("id", "day", "u", "a", "b", "sa", "c", "n")
_GROUPS = [{"sequence": ["sa"], "columns": ["a", "b"]}]
_FUNCTIONS = {"a": "sum", "b": "max", "sa": "first", "c": "approx_count_distinct", "n": "count"}


@dataclass(frozen=True)
class Case:
    merge: Mapping[str, Any]
    sequence: tuple[str, ...] = ()

    @property
    def takes_values(self) -> tuple[str, ...]:
        """What a delete by key has beside key and partition."""
        if self.merge.get("retract"):
            return ("a", "n")
        return ("sa",) if self.merge.get("on_delete") == "groups" else ()

    def __str__(self) -> str:
        rest = [str(self.merge[name]) for name in ("on_delete", "retract") if name in self.merge]
        return "-".join([self.merge["engine"], *rest, *self.sequence])


CASES = [
    Case({"engine": "first_row"}),
    Case({"engine": "first_row"}, ("u",)),
    Case({"engine": "partial_update"}),
    Case({"engine": "partial_update", "groups": _GROUPS}),
    Case({"engine": "partial_update", "groups": _GROUPS, "on_delete": "groups"}),
    Case({"engine": "partial_update", "groups": _GROUPS}, ("u",)),
    Case({"engine": "aggregate", "functions": _FUNCTIONS}),
    Case({"engine": "aggregate", "functions": _FUNCTIONS}, ("u",)),
    Case({"engine": "aggregate", "functions": {"a": "sum", "n": "count"}, "retract": True}),
]


@dataclass
class Walk:
    """A table that random things happen to, and what has come to it."""

    engine: Engine
    table: Table
    case: Case
    dice: random.Random
    events: list[Event]
    states: dict[int, list[dict[str, Any]]]

    @property
    def model(self) -> Model:
        return Model(key=("id",), columns=_NAMES, merge=self.case.merge, sequence=self.case.sequence, fixed=("day",))

    def step(self) -> None:
        match self.dice.choice(["upsert"] * 4 + ["keys", "where", "compact", "compact"]):
            case "upsert":
                rows = [self._row() for _ in range(self.dice.randint(1, 6))]
                self.engine.write(self.table, "upsert", _data(rows, _NAMES))
                self.events += [Event(row) for row in rows]
            case "keys":
                names = ("id", "day", *self.case.sequence, *self.case.takes_values)
                row = {name: value for name, value in self._row().items() if name in names}
                self.engine.write(self.table, "delete_keys", _data([row], names))
                self.events.append(Event(row, is_delete=True))
            case "where" if not self.case.merge.get("retract"):
                self._delete_where()
            case _:
                self.engine.compact(self.table, full=self.dice.random() < 0.5)
        head = self.table.head
        self.states[head.id if head else 0] = self.model.rows(self.events)

    def _row(self) -> dict[str, Any]:
        given = {name: self.dice.choice([None, 0, 1, 2, 3]) for name in ("u", "a", "sa", "c", "n")}
        key = {"id": self.dice.randint(0, 5), "day": self.dice.choice("xy"), "b": self.dice.choice([None, "p", "q"])}
        return {name: {**given, **key}[name] for name in _NAMES}

    def _delete_where(self) -> None:
        """A delete by predicate names the rows that match, with the sequences that they have."""
        doomed = [row for row in self.model.rows(self.events) if (row["c"] or 0) > 2]
        self.table.delete("c > 2")
        kept = ("id", "day", *self.case.sequence, *self.case.takes_values)
        self.events += [Event({name: row[name] for name in kept}, is_delete=True) for row in doomed]

    def check(self, at: int) -> None:
        expected = self.states[at]
        assert _rows(self.engine.read(self.table.scan(at=at))) == _sorted(expected)
        assert self.table.scan(at=at).count() == len(expected)
        for where, holds in _WHERES.items():
            found = _rows(self.engine.read(self.table.scan(at=at, where=where, columns=["id", "a"])))
            assert found == _sorted([{"id": row["id"], "a": row["a"]} for row in expected if holds(row)]), where


_WHERES = {
    "a > 1": lambda row: row["a"] is not None and row["a"] > 1,
    "a is null and day = 'x'": lambda row: row["a"] is None and row["day"] == "x",
    "id = 3": lambda row: row["id"] == 3,
    "b = 'p' or c = 2": lambda row: row["b"] == "p" or row["c"] == 2,
}


def _data(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.Table:
    kinds = {name: pa.string() if name in ("day", "b") else pa.int64() for name in names}
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(list(kinds.items())))


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return _sorted(table.to_pylist())


def _sorted(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows), key=repr)


def _walk(engine: Engine, new_table: NewTable, case: Case, seed: int, steps: int) -> Walk:
    dice = random.Random(f"{case} {seed}")
    table = new_table(
        _DDL,
        primary_key=["id"],
        partition_by=["day"],
        sequence_by=list(case.sequence),
        merge=case.merge,
        buckets=dice.choice([2, "dynamic"]),
        options={"min_bucket_file_bytes": 0, "compact_runs": 3},
    )
    walk = Walk(engine, table, case, dice, [], {})
    for _ in range(steps):
        walk.step()
    return walk


@in_process
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_history_reads_as_the_model_says(engine: Engine, new_table: NewTable, case: Case, seed: int) -> None:
    walk = _walk(engine, new_table, case, seed, 14)
    for at in walk.states:
        if at:
            walk.check(at)
    walk.table.compact(full=True)
    assert _rows(engine.read(walk.table.scan())) == _sorted(walk.model.rows(walk.events))
    assert walk.table.compact(full=True).units == 0


@in_process
@pytest.mark.parametrize("case", CASES, ids=str)
def test_net_changes_lead_from_one_state_to_another(engine: Engine, new_table: NewTable, case: Case) -> None:
    walk = _walk(engine, new_table, case, 7, 14)
    ids = sorted(walk.states)
    for first, last in zip(ids, ids[2:], strict=False):
        _check_changes(engine, walk, first, last)


def _check_changes(engine: Engine, walk: Walk, first: int, last: int) -> None:
    """They lead from one state to the other."""
    net: Any = walk.table.changes(after=first, until=last, view="net")
    latest: Any = walk.table.changes(after=first, until=last)
    changes = engine.read(net).to_pylist()
    before = {(row["id"], row["day"]): row for row in walk.states[first]} if first else {}
    # In no order that Spark would keep: what a row was comes before what it is.
    for change in sorted(changes, key=lambda change: change["_change"] in ("insert", "update_after")):
        kind = change.pop("_change")
        change.pop("_commit")
        key = (change["id"], change["day"])
        if kind in ("delete", "update_before"):
            assert before.pop(key) == change
        else:
            assert key not in before
            before[key] = change
    assert _sorted(list(before.values())) == _sorted(walk.states[last])
    after = {(row["id"], row["day"]): row for row in walk.states[last]}
    told = {(row["id"], row["day"]): row for row in engine.read(latest).to_pylist()}
    assert {(change["id"], change["day"]) for change in changes} <= told.keys()
    for key, row in told.items():
        assert (row["_op"] == "delete") == (key not in after)
        if key in after:
            assert {name: row[name] for name in _NAMES} == after[key]


@pytest.mark.parametrize("engine", ["spark"], indirect=True)
@pytest.mark.parametrize("case", CASES if WHOLE_MATRICES else [CASES[5], CASES[7]], ids=str)
def test_spark_reads_writes_and_compacts_the_same(engine: SparkEngine, new_table: NewTable, case: Case) -> None:
    walk = _walk(engine, new_table, case, 1, 6)
    last = max(walk.states)
    walk.check(last)
    _check_changes(engine, walk, 0, last)
    _check_changes(engine, walk, min(walk.states), last)


@pytest.mark.parametrize("storage_kind", ["s3"], indirect=True)
@pytest.mark.parametrize("engine", ["arrow"], indirect=True)
@pytest.mark.parametrize("case", CASES if WHOLE_MATRICES else [CASES[4]], ids=str)
def test_a_history_on_s3_reads_as_the_model_says(engine: Engine, new_table: NewTable, case: Case) -> None:
    walk = _walk(engine, new_table, case, 2, 8)
    walk.table.compact(full=True)
    walk.check(max(walk.states))


@in_process
def test_two_sources_fill_a_row_each_in_its_own_order(engine: Engine, new_table: NewTable) -> None:
    table = new_table(
        "id BIGINT, paid_at BIGINT, paid DOUBLE, method STRING, sent_at BIGINT, parcel STRING",
        primary_key=["id"],
        merge={
            "engine": "partial_update",
            "groups": [
                {"sequence": ["paid_at"], "columns": ["paid", "method"]},
                {"sequence": ["sent_at"], "columns": ["parcel"]},
            ],
        },
    )
    table.upsert(pa.table({"id": [1], "paid_at": [2], "paid": [5.0], "method": pa.array([None], pa.string())}))
    table.upsert(pa.table({"id": [1], "sent_at": [7], "parcel": ["p"]}))
    table.upsert(pa.table({"id": [1], "paid_at": [1], "paid": [4.0], "method": ["card"]}))
    expected = {"id": 1, "paid_at": 2, "paid": 5.0, "method": None, "sent_at": 7, "parcel": "p"}
    assert table.scan().to_arrow().to_pylist() == [expected]
    table.evolve(rename={"paid": "amount"})
    assert table.scan(columns=["amount"]).to_arrow().to_pylist() == [{"amount": 5.0}]
    with pytest.raises(InvalidInputError, match="a sequence group of the table's merge engine names it"):
        table.evolve(drop=["method"])


def test_a_column_is_added_with_its_function(new_table: NewTable) -> None:
    table = new_table(
        "id BIGINT, a BIGINT", primary_key=["id"], merge={"engine": "aggregate", "functions": {"a": "sum"}}
    )
    table.upsert(pa.table({"id": [1], "a": [1]}))
    table.evolve(add=["top BIGINT"], functions={"top": "max"})
    for top in (3, 9, 4):
        table.upsert(pa.table({"id": [1], "a": [1], "top": [top]}))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "a": 4, "top": 9}]
    assert table.scan(at=1).to_arrow().to_pylist() == [{"id": 1, "a": 1}]
    with pytest.raises(InvalidInputError, match="which is there already"):
        table.evolve(rename={"a": "b"}, functions={"b": "max"})


def test_read_optimized_is_a_state_that_there_was(new_table: NewTable) -> None:
    table = new_table(
        "id BIGINT, a BIGINT", primary_key=["id"], merge={"engine": "aggregate", "functions": {"a": "sum"}}
    )
    for _ in range(3):
        table.upsert(pa.table({"id": [1], "a": [1]}))
    assert table.scan(view="read_optimized").to_arrow().column("a").to_pylist() == [1]
    table.compact(full=True)
    table.upsert(pa.table({"id": [1, 2], "a": [1, 1]}))
    assert table.scan(view="read_optimized").to_arrow().to_pylist() == [{"id": 1, "a": 3}]


def test_a_rollback_brings_values_back(new_table: NewTable) -> None:
    table = new_table(
        "id BIGINT, a BIGINT", primary_key=["id"], merge={"engine": "aggregate", "functions": {"a": "sum"}}
    )
    for _ in range(3):
        table.upsert(pa.table({"id": [1], "a": [1]}))
    table.rollback(1)
    table.upsert(pa.table({"id": [1], "a": [10]}))
    assert table.scan().to_arrow().column("a").to_pylist() == [11]


def test_a_gate_judges_what_the_row_will_be(engine: Engine, new_table: NewTable) -> None:
    table = new_table(
        "id BIGINT, a BIGINT", primary_key=["id"], merge={"engine": "aggregate", "functions": {"a": "sum"}}
    )
    table.upsert(pa.table({"id": [1], "a": [60]}))
    check = "type: expect_column_values_to_be_between, kwargs: {column: a, max_value: 100}"
    suite = parse_suite(f"name: small\nexpectations:\n- {{{check}, severity: critical, scope: merged}}\n")
    for a, outcome in ((40, Outcome.ACCEPT), (41, Outcome.REJECT)):
        staged = engine.write(table, "stage_upsert", pa.table({"id": [1], "a": [a]}))
        assert engine.read(staged.scan(scope="merged")).column("a").to_pylist() == [60 + a]
        assert engine.judge(staged, suite).outcome is outcome


def test_deletes_that_a_table_refuses(new_table: NewTable) -> None:
    table = new_table(
        "id BIGINT, a BIGINT", primary_key=["id"], merge={"engine": "partial_update", "on_delete": "refuse"}
    )
    table.upsert(pa.table({"id": [1], "a": [60]}))
    for delete in (lambda: table.delete("a = 60"), lambda: table.delete_keys(pa.table({"id": [1]}))):
        with pytest.raises(InvalidInputError) as refused:
            delete()
        assert refused.value.kind == "deletes_refused"
    assert table.scan().count() == 1


def test_what_has_no_inverse_is_not_taken_back(new_table: NewTable) -> None:
    merge = {"engine": "aggregate", "functions": {"a": "sum", "b": "max"}, "retract": True}
    table = new_table("id BIGINT, a BIGINT, b BIGINT", primary_key=["id"], merge=merge)
    table.upsert(pa.table({"id": [1], "a": [60], "b": [3]}))
    with pytest.raises(InvalidInputError, match="max has no inverse"):
        table.delete_keys(pa.table({"id": [1], "a": [60], "b": [3]}))
    table.delete_keys(pa.table({"id": [1], "a": [60]}))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "a": None, "b": 3}]


def test_deletes_that_would_do_nothing_are_refused(new_table: NewTable) -> None:
    """Keys alone take nothing back; half a sequence says of no group as of when it is empty."""
    merge = {"engine": "aggregate", "functions": {"a": "sum", "b": "max"}, "retract": True}
    table = new_table("id BIGINT, a BIGINT, b BIGINT", primary_key=["id"], merge=merge)
    groups = [{"sequence": ["s", "t"], "columns": ["a"]}]
    partly = {"engine": "partial_update", "groups": groups, "on_delete": "groups"}
    other = new_table("id BIGINT, a BIGINT, s BIGINT, t BIGINT", primary_key=["id"], merge=partly)
    for refusing, keys in (
        (table, pa.table({"id": [1]})),
        (table, pa.table({"id": [1], "b": [3]})),
        (other, pa.table({"id": [1], "s": [3]})),
    ):
        with pytest.raises(InvalidInputError) as refused:
            refusing.delete_keys(keys)
        assert refused.value.kind == "missing_column"
        assert refusing.head is None


_WRONG: dict[str, tuple[Any, str]] = {
    "unknown": ("first_rows", "first_row"),
    "no text": (3, "Give the name"),
    "option": ({"engine": "first_row", "groups": []}, "It takes"),
    "function": ({"engine": "aggregate", "functions": {"a": "summ"}}, "sum"),
    "type": ({"engine": "aggregate", "functions": {"b": "sum"}}, "bigint, float, double or decimal"),
    "key": ({"engine": "aggregate", "functions": {"id": "sum"}}, "Leave it out"),
    "column": ({"engine": "aggregate", "functions": {"aa": "sum"}}, "a"),
    "column twice": ({"engine": "aggregate", "functions": {"A": "sum", "a": "max"}}, "Name it once"),
    "partial functions": ({"engine": "partial_update", "functions": {"a": "sum"}}, "It takes"),
    "group of the key": (
        {"engine": "partial_update", "groups": [{"sequence": ["id"], "columns": ["a"]}]},
        "Leave it out",
    ),
    "groups that overlap": (
        {
            "engine": "partial_update",
            "groups": [{"sequence": ["a"], "columns": ["b"]}, {"sequence": ["c"], "columns": ["b"]}],
        },
        "name it once",
    ),
    "half a group": ({"engine": "partial_update", "groups": [{"sequence": ["a"]}]}, "Give a list of groups"),
    "no group to empty": ({"engine": "partial_update", "on_delete": "groups"}, "Name groups"),
    "on_delete": ({"engine": "partial_update", "on_delete": "rows"}, "row"),
}


@pytest.mark.parametrize(("merge", "remedy"), _WRONG.values(), ids=_WRONG)
def test_what_no_table_can_be(new_table: NewTable, merge: Any, remedy: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        new_table("id BIGINT, a BIGINT, b STRING, c BIGINT", primary_key=["id"], merge=merge)
    assert remedy in refused.value.remedy


def test_append_tables_have_no_merge_engine(new_table: NewTable) -> None:
    with pytest.raises(InvalidInputError, match="no primary key"):
        new_table("id BIGINT, a BIGINT", merge="first_row")


def test_a_delta_log_of_the_head_would_show_versions_that_are_no_rows(new_table: NewTable) -> None:
    with pytest.raises(InvalidInputError, match="no version is a row by itself"):
        new_table("id BIGINT", primary_key=["id"], merge="first_row", options={"delta": "head"})
    table = new_table("id BIGINT", primary_key=["id"], merge="first_row", options={"delta": "compacted"})
    for option in ("delta", "ducklake"):
        with pytest.raises(InvalidInputError, match="first_row"):
            table.set_options({option: "head"})
