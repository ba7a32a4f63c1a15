"""How columns are kept: dictionaries where they pay, and no codec where it leaves nearly all."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelib.storage.encodings import choose_dictionaries, find_incompressible, is_fixed

ROWS = 131_072
RANDOM = np.random.default_rng(1)


def chosen(row_group_rows: int = ROWS, **columns: Any) -> list[str]:
    rows = pa.table(columns)
    return choose_dictionaries(rows, rows.column_names, row_group_rows)


def below(most: int, rows: int = ROWS) -> Any:
    return RANDOM.integers(0, most, rows)


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(12, 2)])
def test_numbers_of_which_a_row_group_has_few_have_a_dictionary(kind: pa.DataType) -> None:
    def prices(most: int) -> pa.Array:
        cents = below(most)
        if pa.types.is_floating(kind):
            return pa.array(cents / 100)
        return pa.array([Decimal(int(each)) / 100 for each in cents], kind)

    assert chosen(few=prices(20_000), many=prices(200_000)) == ["few"]
    assert chosen(row_group_rows=16_384, few=prices(20_000)) == []


def test_values_that_are_all_unlike_have_none() -> None:
    assert chosen(a=RANDOM.random(ROWS), b=np.arange(ROWS), c=[str(each) for each in range(ROWS)]) == []


def test_few_values_have_one_and_booleans_never() -> None:
    words = pa.array(np.array(["NEW", "PAID"])[below(2)])

    assert chosen(a=below(300), b=words, c=pa.array(below(2) > 0), d=pa.nulls(ROWS, pa.float64())) == ["a", "b", "d"]


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_so_few_rows_have_none(rows: int) -> None:
    assert chosen(a=np.arange(rows, dtype=np.float64)) == []


def tried(rows: int = ROWS, dictionaries: tuple[str, ...] = (), **columns: Any) -> list[str]:
    table = pa.table({name: values[:rows] for name, values in columns.items()})
    deltas = {name: "DELTA_BINARY_PACKED" for name in table.column_names if pa.types.is_integer(table[name].type)}
    kept = {name: each for name, each in deltas.items() if name not in dictionaries}
    return find_incompressible(table, dictionaries, kept, "zstd", 1)


def test_what_a_codec_leaves_as_it_is_is_kept_without() -> None:
    found = tried(random=RANDOM.random(ROWS), packed=below(200_000), prices=below(100) / 100, ascending=np.arange(ROWS))

    assert {"packed"} <= {*found} <= {"packed", "random", "ascending"}
    assert tried(codes=below(16), dictionaries=("codes",)) == ["codes"]


def test_what_changes_further_on_is_seen_there() -> None:
    """The first rows are not all."""
    values = RANDOM.random(ROWS)
    values[ROWS // 2 :] = 1.0

    assert tried(values=values) == []


def test_few_rows_are_not_tried() -> None:
    assert tried(65_535, packed=below(200_000)) == []
    assert tried(65_536, packed=below(200_000)) == ["packed"]
    assert tried() == []


def test_values_of_no_size_of_their_own_are_always_compressed() -> None:
    fixed = [pa.int8(), pa.int64(), pa.float32(), pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(38, 9)]
    others = [pa.string(), pa.binary(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])]

    assert all(map(is_fixed, fixed))
    assert not any(map(is_fixed, others))
