"""Predicates mean the same everywhere: as filter, as pruning by bounds, and as text."""

import math
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.model.files import ColumnBounds, DataFile
from lakelib.model.predicate import (
    And,
    Compare,
    CompareColumns,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    Raw,
)
from lakelib.model.schema import Column, TableSchema
from lakelib.model.sortable import encode
from lakelib.plan import literals
from lakelib.plan.prune import file_may_match, key_part, key_tuples, may_ever_match, partition_may_match
from lakelib.plan.where import describe_predicate, parse_where
from lakelib.rows.filter import matching_rows
from lakelib.rows.raw_arrays import arrow_values
from lakelib.storage.footers import cut_lower, cut_upper

Row = tuple[Raw | None, ...]

LONG = "x" * 70
FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.5, 0.5]
MOMENTS = [-(10**15), -1, 0, 1, 10**15]
SAMPLES: dict[str, list[Raw]] = {
    "tinyint": [-128, -1, 0, 1, 2, 127],
    "bigint": [-(2**63), -1, 0, 1, 2, 2**53 + 1, 2**63 - 1],
    "decimal(38,4)": [-(10**38) + 1, -1, 0, 1, 10_000, 10**38 - 1],
    "double": [*FLOATS, 0.1, 5e-324],
    "float": [*FLOATS],
    "string": ["", "a", "ab", "a%", "a_b", "b\n", "ü", "z\U0001f600", LONG, LONG + "a", LONG + "\uffff"],
    "binary": [b"", b"\x00", b"a", b"\xff", b"\xff" * 70],
    "date": [-20_000, -1, 0, 1, 20_000],
    "timestamp": [*MOMENTS],
    "timestamp_ntz": [*MOMENTS],
    "boolean": [False, True],
}
LITERAL_SAMPLES = SAMPLES | {"float": SAMPLES["double"]}
"""What a column may be compared with: a float column also with numbers that it cannot hold."""

VALUES = {kind: st.sampled_from(samples) for kind, samples in SAMPLES.items()}
LITERALS = {kind: st.sampled_from(samples) for kind, samples in LITERAL_SAMPLES.items()}

TYPES = tuple(VALUES)
COLUMNS = tuple(
    Column(id=number, name=f"{side}_{kind}", type=kind)
    for number, (side, kind) in enumerate(((side, kind) for kind in TYPES for side in "ab"), start=1)
)
SCHEMA = TableSchema(id=1, columns=COLUMNS)

rows_of_table = st.lists(st.tuples(*(st.none() | VALUES[column.type] for column in COLUMNS)), min_size=1, max_size=6)
columns = st.sampled_from(COLUMNS)
text_columns = st.sampled_from([column for column in COLUMNS if column.type == "string"])
patterns = st.lists(st.sampled_from(["%", "_", "a", "b", "x", "\\%", "\\_", "\\\\", "ü", LONG]), max_size=4).map(
    "".join
)


@st.composite
def compares(draw: st.DrawFn) -> Predicate:
    column = draw(columns)
    return Compare(column=column, op=draw(st.sampled_from(Comparison)), value=draw(LITERALS[column.type]))


@st.composite
def column_pairs(draw: st.DrawFn) -> Predicate:
    place = draw(st.integers(0, len(TYPES) - 1)) * 2
    left, right = COLUMNS[place : place + 2]
    return CompareColumns(left=left, op=draw(st.sampled_from(Comparison)), right=right)


@st.composite
def memberships(draw: st.DrawFn) -> Predicate:
    column = draw(columns)
    return In(column=column, values=tuple(draw(st.lists(LITERALS[column.type], min_size=1, max_size=4))))


leaves = (
    st.builds(Constant, value=st.sampled_from([True, False, None]))
    | compares()
    | compares()
    | column_pairs()
    | memberships()
    | st.builds(IsNull, column=columns)
    | st.builds(Like, column=text_columns, pattern=patterns)
)
predicates: st.SearchStrategy[Predicate] = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Not, part=inner)
        | st.builds(And, parts=st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, parts=st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=6,
)


def table_of(rows: list[Row]) -> pa.Table:
    arrays = [arrow_values(column.type, [row[place] for row in rows]) for place, column in enumerate(COLUMNS)]
    return pa.table(arrays, names=list(SCHEMA.names))


def truth_of(predicate: Predicate, row: Row) -> bool | None:
    """SQL's three-valued logic, one row at a time, written for clearness."""
    match predicate:
        case Constant(value=value):
            return value
        case Compare(column=column, op=op, value=raw):
            return compare(row[column.id - 1], op, raw)
        case CompareColumns(left=left, op=op, right=right):
            return compare(row[left.id - 1], op, row[right.id - 1])
        case In(column=column, values=values):
            return any_of([compare(row[column.id - 1], Comparison.EQ, raw) for raw in values])
        case IsNull(column=column):
            return row[column.id - 1] is None
        case Like(column=column, pattern=pattern):
            text = row[column.id - 1]
            return None if text is None else is_like(str(text), pattern)
        case Not(part=part):
            return negated(truth_of(part, row))
        case And(parts=parts):
            return negated(any_of([negated(truth_of(part, row)) for part in parts]))
        case Or(parts=parts):
            return any_of([truth_of(part, row) for part in parts])


def negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def any_of(truths: list[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def compare(left: Raw | None, op: Comparison, right: Raw | None) -> bool | None:
    if left is None or right is None:
        return None
    low, high = ordered(left), ordered(right)
    outcomes = {"=": low == high, "<": low < high, ">": low > high}
    return any(outcomes[sign] for sign in ("<", "=", ">") if sign in op.value)


def ordered(raw: Raw) -> Any:
    if isinstance(raw, float):
        return (1, 0.0) if math.isnan(raw) else (0, raw)
    return raw.encode() if isinstance(raw, str) else raw


def is_like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(is_like(text[start:], pattern[1:]) for start in range(len(text) + 1))
    if pattern[0] == "_":
        return bool(text) and is_like(text[1:], pattern[1:])
    size = 2 if pattern[0] == "\\" else 1
    return text[:1] == pattern[size - 1] and is_like(text[1:], pattern[size:])


def bounds_of(rows: list[Row]) -> ColumnBounds:
    """What a writer records of a file, bounds of long values cut."""
    lower, upper, null_counts = [], [], []
    for place, column in enumerate(COLUMNS):
        present = sorted(encode(column.type, value) for row in rows if (value := row[place]) is not None)
        lower.append(cut_lower(present[0]) if present else None)
        upper.append(cut_upper(present[-1]) if present else None)
        null_counts.append(len(rows) - len(present))
    return ColumnBounds(lower=tuple(lower), upper=tuple(upper), null_counts=tuple(null_counts))


def file_of(rows: list[Row], bounds: ColumnBounds) -> DataFile:
    return DataFile(
        id=1, path="f", partition_id=1, depth=0, prefix=0, run=0, level=0, row_count=len(rows), delete_count=0,
        size_bytes=1, schema_id=1, sequence=1, added_snapshot=1, removed_snapshot=None, bounds=bounds,
    )  # fmt: skip


def matches(predicate: Predicate, rows: list[Row]) -> list[bool]:
    found: list[bool] = matching_rows(predicate, table_of(rows)).to_pylist()
    return found


@pytest.mark.parametrize("kind", TYPES)
def test_every_value_compares_with_every_literal_as_in_sql(kind: str) -> None:
    left, right = (column for column in COLUMNS if column.type == kind)
    pairs = list(product([*SAMPLES[kind], None], [*SAMPLES[kind], None]))
    table = pa.table(
        [arrow_values(kind, [pair[side] for pair in pairs]) for side in (0, 1)], names=[left.name, right.name]
    )
    for op in Comparison:
        found = matching_rows(CompareColumns(left=left, op=op, right=right), table).to_pylist()
        assert found == [compare(a, op, b) is True for a, b in pairs]
        for literal in LITERAL_SAMPLES[kind]:
            found = matching_rows(Compare(column=left, op=op, value=literal), table).to_pylist()
            assert found == [compare(a, op, literal) is True for a, _ in pairs]


@given(predicate=predicates, rows=rows_of_table)
def test_filter_agrees_with_three_valued_logic_row_by_row(predicate: Predicate, rows: list[Row]) -> None:
    assert matches(predicate, rows) == [truth_of(predicate, row) is True for row in rows]


@given(predicate=predicates, rows=rows_of_table)
def test_a_pruned_file_holds_no_matching_row(predicate: Predicate, rows: list[Row]) -> None:
    may_match = file_may_match(predicate, file_of(rows, bounds_of(rows)))
    assert may_match or not any(truth_of(predicate, row) for row in rows)


@given(predicate=predicates, rows=rows_of_table)
def test_a_file_without_bounds_is_never_pruned_wrongly(predicate: Predicate, rows: list[Row]) -> None:
    may_match = file_may_match(predicate, file_of(rows, ColumnBounds()))
    assert may_match or not any(truth_of(predicate, row) for row in rows)


@given(leaf=compares() | memberships() | st.builds(IsNull, column=columns), row=rows_of_table.map(lambda rows: rows[0]))
def test_pruning_is_exact_where_all_values_of_a_column_are_one(leaf: Predicate, row: Row) -> None:
    exact = ColumnBounds(
        lower=tuple(None if raw is None else encode(c.type, raw) for raw, c in zip(row, COLUMNS, strict=True)),
        upper=tuple(None if raw is None else encode(c.type, raw) for raw, c in zip(row, COLUMNS, strict=True)),
        null_counts=tuple(int(raw is None) for raw in row),
    )
    for predicate in (leaf, Not(part=leaf)):
        assert file_may_match(predicate, file_of([row], exact)) == (truth_of(predicate, row) is True)


@given(predicate=predicates, row=rows_of_table.map(lambda rows: rows[0]), data=st.data())
def test_a_pruned_partition_holds_no_matching_row(predicate: Predicate, row: Row, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(columns, min_size=1, max_size=3, unique=True))
    values = [row[column.id - 1] for column in chosen]
    key = tuple(None if raw is None else encode(c.type, raw) for raw, c in zip(values, chosen, strict=True))
    assert partition_may_match(predicate, chosen, key) or not truth_of(predicate, row)


@given(predicate=predicates, row=rows_of_table.map(lambda rows: rows[0]), ids=st.frozensets(st.integers(1, 22)))
def test_a_matching_row_also_matches_each_part_of_the_predicate(
    predicate: Predicate, row: Row, ids: frozenset[int]
) -> None:
    part = key_part(predicate, ids)
    assert part is None or not truth_of(predicate, row) or truth_of(part, row)


@given(predicate=predicates, row=rows_of_table.map(lambda rows: rows[0]))
def test_what_can_never_match_matches_no_row(predicate: Predicate, row: Row) -> None:
    assert may_ever_match(predicate) or not truth_of(predicate, row)


@st.composite
def listings(draw: st.DrawFn) -> Predicate:
    """What folds: comparisons and lists of few columns, and what stands among them."""
    column = draw(st.sampled_from(COLUMNS[:2] + COLUMNS[6:8]))
    values = draw(st.lists(LITERALS[column.type], min_size=1, max_size=3))
    listed = In(column=column, values=tuple(values))
    single = Compare(column=column, op=draw(st.sampled_from([Comparison.EQ, Comparison.NE])), value=values[0])
    constant = Constant(value=draw(st.sampled_from([True, False, None])))
    return draw(st.sampled_from([listed, Not(part=listed), single, Not(part=single), IsNull(column=column), constant]))


chains = st.lists(
    listings()
    | st.lists(listings(), min_size=1, max_size=3).map(literals.any_of)
    | st.lists(listings(), min_size=1, max_size=3).map(literals.all_of),
    min_size=1,
    max_size=6,
)


@given(parts=chains, row=rows_of_table.map(lambda rows: rows[0]))
def test_folding_a_chain_keeps_true_false_and_null(parts: list[Predicate], row: Row) -> None:
    chain = tuple(parts)
    assert truth_of(literals.any_of(parts), row) == truth_of(Or(parts=chain), row)
    assert truth_of(literals.all_of(parts), row) == truth_of(And(parts=chain), row)


KEYS = (COLUMNS[0], COLUMNS[TYPES.index("string") * 2])


@st.composite
def key_predicates(draw: st.DrawFn) -> Predicate:
    column = draw(st.sampled_from(KEYS))
    values = st.sampled_from([0, 1, 2]) if column.type == "tinyint" else st.sampled_from(["a", "ab", "ü"])
    chosen = tuple(draw(st.lists(values, min_size=1, max_size=3)))
    return (
        In(column=column, values=chosen)
        if draw(st.booleans())
        else Compare(column=column, op=Comparison.EQ, value=chosen[0])
    )


@given(
    conjuncts=st.lists(
        key_predicates() | st.lists(key_predicates(), min_size=1, max_size=2).map(lambda p: Or(parts=tuple(p))),
        max_size=4,
    ),
    row=rows_of_table.map(lambda rows: rows[0]),
)
def test_key_tuples_name_every_key_that_can_match(conjuncts: list[Predicate], row: Row) -> None:
    predicate = And(parts=tuple(conjuncts))
    tuples = key_tuples(predicate, KEYS)
    key = tuple(row[column.id - 1] for column in KEYS)
    assert tuples is None or not truth_of(predicate, row) or key in tuples


@given(predicate=predicates, rows=rows_of_table)
def test_the_text_of_a_predicate_means_the_predicate(predicate: Predicate, rows: list[Row]) -> None:
    again = parse_where(describe_predicate(predicate), SCHEMA)
    assert matches(again, rows) == matches(predicate, rows)
