"""Whatever versions come, in whatever commits, and however compactions group them: rows are what the model says."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib import InvalidInputError
from lakelib.model.merge import merge_from_text
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN, Op, TableSchema
from lakelib.plan.declare import declare_schema
from lakelib.plan.declare_merge import Roles, declare_merge
from lakelib.rows.merge import arrange_window, merge_tables, merge_windows
from lakelib.rows.merge_engine import Engine, engine_of, live_rows
from lakelib.rows.types import arrow_schema, hidden_field
from tests.merge_model import Event, Model

_GROUPS = [{"sequence": ["s1"], "columns": ["a", "b"]}, {"sequence": ["s2", "s3"], "columns": ["c"]}]
_PARTIAL = "k BIGINT, u BIGINT, a BIGINT, b STRING, s1 BIGINT, c STRING, s2 BIGINT, s3 STRING, d STRING"
_AGGREGATE = (
    "k BIGINT, u BIGINT, total BIGINT, n BIGINT, dn BIGINT, p BIGINT, lo STRING, hi DOUBLE, f STRING, l STRING,"
    " fn STRING, ln BIGINT, every BOOLEAN, some BOOLEAN, list ARRAY<BIGINT>, uniq ARRAY<STRING>,"
    " m MAP<STRING, BIGINT>, t STRING"
)
_FUNCTIONS = {
    "total": "sum",
    "n": "count",
    "dn": "approx_count_distinct",
    "p": "product",
    "lo": "min",
    "hi": "max",
    "f": "first",
    "l": "last",
    "fn": "first_non_null",
    "every": "bool_and",
    "some": "bool_or",
    "list": "collect_list",
    "uniq": "collect_set",
    "m": "merge_map",
    "t": "listagg",
}


@dataclass(frozen=True)
class Case:
    ddl: str
    merge: dict[str, Any]
    sequence: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = [name for name in self.merge if name != "engine"]
        return "-".join([self.merge["engine"], *more, *self.sequence])


_SEQUENCES: tuple[tuple[str, ...], ...] = ((), ("u",))
_RETRACTING = {
    "engine": "aggregate",
    "functions": {"a": "sum", "n": "count", "f": "first", "l": "last"},
    "retract": True,
}
_MERGES = [
    ("k BIGINT, u BIGINT, a STRING", {"engine": "first_row"}),
    (_PARTIAL, {"engine": "partial_update"}),
    (_PARTIAL, {"engine": "partial_update", "groups": _GROUPS}),
    (_PARTIAL, {"engine": "partial_update", "groups": _GROUPS, "on_delete": "groups"}),
    (_AGGREGATE, {"engine": "aggregate", "functions": _FUNCTIONS}),
    ("k BIGINT, u BIGINT, a BIGINT, n BIGINT, x STRING, f STRING, l STRING", _RETRACTING),
]
CASES = [Case(ddl, merge, sequence) for ddl, merge in _MERGES for sequence in _SEQUENCES]

_VALUES = {
    "bigint": st.none() | st.integers(-3, 3),
    "string": st.none() | st.sampled_from(["", "x", "y", "zz"]),
    "double": st.none() | st.sampled_from([-1.5, 0.0, 2.5]),
    "boolean": st.none() | st.booleans(),
    "array<bigint>": st.none() | st.lists(st.none() | st.integers(0, 3), max_size=3),
    "array<string>": st.none() | st.lists(st.none() | st.sampled_from(["x", "y", "z"]), max_size=3),
    "map<string,bigint>": st.none()
    | st.dictionaries(st.sampled_from(["x", "y", "z"]), st.none() | st.integers(0, 3)).map(lambda d: list(d.items())),
}


@dataclass(frozen=True)
class Table:
    """A case's schema, engine and model."""

    schema: TableSchema
    engine: Engine
    model: Model
    mark: Op

    @classmethod
    def of(cls, case: Case) -> "Table":
        declared = TableSchema(id=1, columns=declare_schema(case.ddl))
        sequence_ids = tuple(column.id for column in declared.columns if column.name in case.sequence)
        roles = Roles(key_ids=(1,), partition_ids=(), sequence_ids=sequence_ids)
        merge, schema = declare_merge(case.merge, declared, roles)
        engine = engine_of(merge_from_text(merge.as_text()), schema, (1,), (), sequence_ids)
        assert engine is not None
        model = Model(key=("k",), columns=schema.names, merge=case.merge, sequence=case.sequence)
        return cls(schema=schema, engine=engine, model=model, mark=Op.VALUES if merge.keeps_marks else Op.DELETE)

    def run(self, events: Sequence[Event], commit: int) -> pa.Table:
        """One commit, as files have it."""
        ops = [int(self.mark) if event.is_delete else 0 for event in events]
        rows = pa.Table.from_pylist([event.row for event in events], schema=arrow_schema(self.schema.columns))
        rows = rows.append_column(hidden_field(OP_COLUMN), pa.array(ops, pa.int8()))
        merged = merge_tables([self.engine.lift(rows)], ["k"], [], self.engine)
        return merged.append_column(hidden_field(COMMIT_COLUMN), pa.array([commit] * merged.num_rows, pa.int64()))

    def merged(self, runs: Sequence[pa.Table]) -> pa.Table:
        windows = merge_windows([iter([run]) for run in runs], ["k"], [], engine=self.engine)
        return pa.concat_tables([arrange_window(window, ["k"]) for window in windows])

    def shown(self, run: pa.Table) -> list[dict[str, Any]]:
        live = live_rows(run)
        rows = run if live is None else run.filter(pa.array(live))
        return [_told(row) for row in rows.select(list(self.schema.names)).to_pylist()]


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {name: sorted(value) if name == "m" and value is not None else value for name, value in row.items()}


@st.composite
def commits(draw: st.DrawFn, case: Case) -> list[list[Event]]:
    columns = declare_schema(case.ddl)
    made = []
    for _ in range(draw(st.integers(1, 6))):
        events = []
        for _ in range(draw(st.integers(1, 5))):
            row = {column.name: draw(_VALUES[column.type]) for column in columns} | {"k": draw(st.integers(0, 2))}
            is_delete = draw(st.sampled_from([False, False, False, True]))
            if is_delete:
                row = _of_delete(case, row)
            events.append(Event(row, is_delete))
        made.append(events)
    return made


def _of_delete(case: Case, row: dict[str, Any]) -> dict[str, Any]:
    """What a delete has of a row."""
    kept = {"k", *case.sequence}
    if case.merge.get("on_delete") == "groups":
        kept |= {"s1", "s2", "s3"}
    if case.merge.get("retract"):
        kept |= {"a", "n"}
    return {name: value if name in kept else None for name, value in row.items()}


@pytest.mark.parametrize("case", CASES, ids=str)
@given(data=st.data())
def test_any_grouping_of_runs_gives_what_the_model_says(case: Case, data: st.DataObject) -> None:
    table = Table.of(case)
    drawn = data.draw(commits(case))
    runs = [table.run(events, commit) for commit, events in enumerate(drawn, start=1)]
    expected = [_told(row) for row in table.model.rows(event for events in drawn for event in events)]
    assert table.shown(table.merged(runs)) == expected
    dice = random.Random(data.draw(st.integers(0, 1000)))
    while len(runs) > 1:
        start = dice.randrange(len(runs) - 1)
        end = dice.randint(start + 2, len(runs))
        runs[start:end] = [table.merged(runs[start:end])]
        assert table.shown(table.merged(runs)) == expected


@given(data=st.data())
def test_two_sources_may_come_in_any_order(data: st.DataObject) -> None:
    """Each fills its own group, with sequences that no two of its versions share."""
    table = Table.of(Case(_PARTIAL, {"engine": "partial_update", "groups": _GROUPS}))
    one = [Event({"k": 0, "s1": n, "a": n if n % 2 else None, "b": f"{n}"}) for n in range(4)]
    other = [Event({"k": 0, "s2": n, "s3": None, "c": f"{n}"}) for n in range(4)]
    expected = table.shown(table.merged([table.run([event], 1) for event in (*one, *other)]))
    shuffled = data.draw(st.permutations((*one, *other)))
    assert table.shown(table.merged([table.run([event], 1) for event in shuffled])) == expected


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("sum", [math.inf, -math.inf], "nan"),
        ("sum", [1e308, 1e308], "inf"),
        ("product", [1e308, -1e308], "-inf"),
        ("product", [math.inf, 0.0], "nan"),
    ],
)
def test_numbers_beyond_all_numbers_are_told_in_silence(function: str, values: list[float], expected: str) -> None:
    table = Table.of(Case("k BIGINT, a DOUBLE", {"engine": "aggregate", "functions": {"a": function}}))
    runs = [table.run([Event({"k": 0, "a": value})], 1) for value in values]
    assert repr(table.shown(table.merged(runs))[0]["a"]) == expected


_FITTING: list[tuple[str, str, list[Any], Any]] = [
    ("sum", "BIGINT", [2**63 - 1, 0], 2**63 - 1),
    ("sum", "BIGINT", [2**63 - 1, 1], None),
    ("sum", "BIGINT", [2**63 - 1, 1, -1], 2**63 - 1),
    ("sum", "BIGINT", [-(2**63), 0, 2**63 - 1], -1),
    ("sum", "BIGINT", [-(2**63), -1], None),
    ("sum", "BIGINT", [2**62] * 4, None),
    ("sum", "DECIMAL(5, 2)", [Decimal("999.98"), Decimal("0.01")], Decimal("999.99")),
    ("sum", "DECIMAL(5, 2)", [Decimal("999.99"), Decimal("0.01")], None),
    ("sum", "DECIMAL(38, 0)", [Decimal(6 * 10**37)] * 2, None),
    ("sum", "DECIMAL(38, 0)", [Decimal(99 * 10**36)] * 4, None),
    ("sum", "DECIMAL(38, 0)", [Decimal(10**38 - 2), Decimal(1)], Decimal(10**38 - 1)),
    ("product", "BIGINT", [2**31, -(2**32)], -(2**63)),
    ("product", "BIGINT", [2**31, 2**32], None),
    ("product", "BIGINT", [2**62] * 20, None),
    ("product", "BIGINT", [2**62] * 20 + [0], 0),
]


@pytest.mark.parametrize(("function", "kind", "values", "expected"), _FITTING)
def test_what_fits_is_exact_and_what_does_not_is_refused(
    function: str, kind: str, values: list[Any], expected: Any
) -> None:
    table = Table.of(Case(f"k BIGINT, a {kind}", {"engine": "aggregate", "functions": {"a": function}}))
    runs = [table.run([Event({"k": 0, "a": value})], 1) for value in values]
    if expected is not None:
        assert table.shown(table.merged(runs))[0]["a"] == expected
        return
    with pytest.raises(InvalidInputError) as refused:
        table.merged(runs)
    assert refused.value.kind == "value_out_of_range"


def test_the_lowest_number_cannot_be_taken_back() -> None:
    merge = {"engine": "aggregate", "functions": {"a": "sum"}, "retract": True}
    table = Table.of(Case("k BIGINT, a BIGINT", merge))
    table.run([Event({"k": 0, "a": -(2**63)})], 1)
    with pytest.raises(InvalidInputError) as refused:
        table.run([Event({"k": 0, "a": -(2**63)}, is_delete=True)], 1)
    assert refused.value.kind == "value_out_of_range"
