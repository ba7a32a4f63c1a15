"""Conditions as people write them find the rows that plain Python finds, fail where it fails, and never lose a file."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from lakelib.errors import InvalidInputError
from lakelib.model.files import ColumnBounds
from lakelib.model.sortable import encode, is_sortable
from lakelib.plan.describe import describe_predicate
from lakelib.plan.prune import file_may_match, key_part, may_fail, partition_may_match
from lakelib.plan.where import parse_where
from lakelib.rows.filter import matching_rows
from lakelib.rows.types import arrow_schema
from lakelib.rows.values import raw_values
from tests.property.test_predicates import file_of
from tests.property.where_texts import SCHEMA, FailedError, Piece, Row, conditions, rows_of_table


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, arrow_schema(SCHEMA.columns))


def outcome(piece: Piece, row: Row) -> bool | str | None:
    try:
        found: bool | None = piece.of(row)
    except FailedError:
        return "failed"
    return found


@given(asked=conditions, rows=rows_of_table)
def test_a_condition_finds_what_python_finds_and_fails_where_it_fails(asked: Piece, rows: list[Row]) -> None:
    try:
        predicate = parse_where(asked.text, SCHEMA)
    except InvalidInputError as error:
        if "value that cannot be computed" not in error.message:
            raise
        return
    expected = [outcome(asked, row) for row in rows]
    table = table_of(rows)
    if "failed" in expected:
        assert may_fail(predicate)
        with pytest.raises(InvalidInputError, match="cannot be computed for a row"):
            matching_rows(predicate, table)
        good = [found for found in expected if found != "failed"]
        mask = pa.array([found != "failed" for found in expected]).to_numpy(zero_copy_only=False)
        found = matching_rows(predicate, table, mask).to_pylist()
        assert [match for match, counts in zip(found, mask, strict=True) if counts] == [each is True for each in good]
        return
    assert matching_rows(predicate, table).to_pylist() == [each is True for each in expected]
    again = parse_where(describe_predicate(predicate), SCHEMA)
    assert matching_rows(again, table).to_pylist() == [each is True for each in expected]


def bounds_of(table: pa.Table) -> ColumnBounds:
    lower: list[bytes | None] = []
    upper: list[bytes | None] = []
    nulls: list[int | None] = []
    for column in SCHEMA.columns:
        if not is_sortable(column.type):
            lower, upper, nulls = [*lower, None], [*upper, None], [*nulls, None]
            continue
        present = sorted(encode(column.type, raw) for raw in raw_values(_whole(table, column.name)) if raw is not None)
        lower.append(present[0] if present else None)
        upper.append(present[-1] if present else None)
        nulls.append(table.num_rows - len(present))
    return ColumnBounds(lower=tuple(lower), upper=tuple(upper), null_counts=tuple(nulls))


def _whole(table: pa.Table, name: str) -> Any:
    return table.column(name).combine_chunks()


@given(asked=conditions, rows=rows_of_table)
def test_nothing_with_a_matching_row_is_pruned(asked: Piece, rows: list[Row]) -> None:
    try:
        predicate = parse_where(asked.text, SCHEMA)
    except InvalidInputError:
        return
    outcomes = [outcome(asked, row) for row in rows]
    table = table_of(rows)
    file = file_of([tuple(row.values()) for row in rows], bounds_of(table))
    assert file_may_match(predicate, file) or True not in outcomes
    part = key_part(predicate, [column.id for column in SCHEMA.columns])
    if part is not None:
        assert not may_fail(part)
        kept = matching_rows(part, table).to_pylist()
        assert all(keeps for keeps, found in zip(kept, outcomes, strict=True) if found is True)
    plain = [column for column in SCHEMA.columns if is_sortable(column.type)]
    for row, found in zip(range(table.num_rows), outcomes, strict=True):
        raws = [raw_values(_whole(table.slice(row, 1), column.name))[0] for column in plain]
        key = tuple(None if raw is None else encode(column.type, raw) for column, raw in zip(plain, raws, strict=True))
        assert partition_may_match(predicate, plain, key) or found is not True
