"""A filter keeps the rows for which a predicate is TRUE."""

from decimal import Decimal

import pyarrow as pa
import pytest

from lakelib.model.schema import Column, TableSchema
from lakelib.plan.where import parse_where
from lakelib.rows.filter import matching_rows

SCHEMA = TableSchema(
    id=1,
    columns=(
        Column(id=1, name="n", type="int"),
        Column(id=2, name="s", type="string"),
        Column(id=3, name="x", type="double"),
        Column(id=4, name="d", type="decimal(38,2)"),
    ),
)
NAN = float("nan")
TABLE = pa.table(
    {
        "n": pa.array([1, None, 3], pa.int32()),
        "s": ["a.b", "a\nb", None],
        "x": [NAN, -0.0, 1.0],
        "d": pa.array(
            [Decimal("999999999999999999999999999999999999.99"), Decimal("0.01"), None], pa.decimal128(38, 2)
        ),
    }
)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("n <> 1", [2]),
        ("NOT (n = 1)", [2]),
        ("n = 1 OR n IS NULL", [0, 1]),
        ("n NOT IN (1, NULL)", []),
        ("n IN (1, NULL)", [0]),
        ("NULL", []),
        ("NULL OR n = 3", [2]),
        ("x > 1.0", [0]),
        ("x = 'NaN'", [0]),
        ("x < 'NaN'", [1, 2]),
        ("x = 0.0", [1]),
        ("x IN (0.0, CAST('NaN' AS DOUBLE))", [0, 1]),
        ("s LIKE 'a.b'", [0]),
        ("s LIKE 'a_b'", [0, 1]),
        ("s LIKE '%b'", [0, 1]),
        ("s NOT LIKE 'a.%'", [1]),
        ("d = 999999999999999999999999999999999999.99", [0]),
        ("d < 999999999999999999999999999999999999.99", [1]),
        ("n > 2.5", [2]),
        ("n < 3000000000", [0, 2]),
        ("n <> 1.5", [0, 2]),
    ],
)
def test_only_rows_for_which_the_predicate_is_true_match(where: str, rows: list[int]) -> None:
    mask = matching_rows(parse_where(where, SCHEMA), TABLE)
    assert mask.null_count == 0
    assert [row for row, found in enumerate(mask.to_pylist()) if found] == rows


def test_a_mask_fits_tables_of_many_chunks_and_single_batches() -> None:
    predicate = parse_where("n = 1 AND s IS NOT NULL", SCHEMA)
    chunked = pa.concat_tables([TABLE, TABLE])
    assert chunked.filter(matching_rows(predicate, chunked)).num_rows == 2
    batch = TABLE.to_batches()[0]
    assert batch.filter(matching_rows(predicate, batch)).num_rows == 1


def test_a_constant_matches_every_row_or_none() -> None:
    assert matching_rows(parse_where("1 = 1", SCHEMA), TABLE).to_pylist() == [True, True, True]
    assert matching_rows(parse_where("1 = 1", SCHEMA), TABLE.slice(0, 0)).to_pylist() == []
