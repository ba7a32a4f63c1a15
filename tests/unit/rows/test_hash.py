"""The key hash, compared with what real Spark answered (tests/golden/xxhash64.json)."""

import json
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelib.errors import InvalidInputError
from lakelib.rows import hash as kernel
from lakelib.rows.hash import hash_prefixes, key_hashes

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "xxhash64.json").read_text())
EXACT = Context(prec=60)
ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}


def column_of(type_text: str, raws: list[Any]) -> pa.Array:
    if type_text.startswith("decimal"):
        precision, scale = map(int, type_text[8:-1].split(","))
        values = [None if raw is None else Decimal(raw).scaleb(-scale, EXACT) for raw in raws]
        return pa.array(values, pa.decimal128(precision, scale))
    if type_text == "binary":
        return pa.array([None if raw is None else bytes.fromhex(raw) for raw in raws], pa.binary())
    if type_text == "date":
        return pa.array(raws, pa.int32()).cast(pa.date32())
    return pa.array(raws, ARROW[type_text])


def columns_of(case: dict[str, Any]) -> list[pa.Array]:
    return [column_of(kind, [row[at] for row in case["rows"]]) for at, kind in enumerate(case["types"])]


def expected_of(case: dict[str, Any]) -> list[int]:
    return np.array(case["hashes"], np.int64).view(np.uint64).tolist()


@pytest.fixture(params=GOLDEN, ids=lambda case: "+".join(case["types"]))
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def test_hash_equals_sparks(case: dict[str, Any]) -> None:
    assert key_hashes(columns_of(case)).tolist() == expected_of(case)


def test_hash_of_a_row_does_not_depend_on_its_neighbours(case: dict[str, Any]) -> None:
    columns = columns_of(case)
    alone = [int(key_hashes([column.slice(row, 1) for column in columns])[0]) for row in range(len(case["rows"]))]
    assert alone == expected_of(case)


def test_hash_does_not_depend_on_chunks(case: dict[str, Any]) -> None:
    columns = [
        pa.chunked_array([column.slice(0, at), column.slice(at, 3), column.slice(at + 3)])
        for at, column in enumerate(columns_of(case), start=1)
    ]
    assert key_hashes(columns).tolist() == expected_of(case)


def test_hash_does_not_depend_on_blocks(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "BLOCK_ROWS", 5)
    assert key_hashes(columns_of(case)).tolist() == expected_of(case)


def test_rows_of_equal_length_hash_as_among_rows_of_other_lengths() -> None:
    rows = [bytes([first]) * length for length in range(1, 100) for first in (1, 200)]
    together = key_hashes([pa.array(rows, pa.binary())]).tolist()
    in_pairs = [key_hashes([pa.array(rows[at : at + 2], pa.binary())]).tolist() for at in range(0, len(rows), 2)]
    assert together == [value for pair in in_pairs for value in pair]


def test_no_rows_have_no_hashes() -> None:
    empty = [pa.array([], kind) for kind in (pa.string(), pa.int64(), pa.bool_(), pa.decimal128(38, 0))]
    assert key_hashes(empty).tolist() == []
    assert key_hashes([pa.chunked_array([], pa.string())]).tolist() == []


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.list_(pa.int64())])
def test_a_type_that_cannot_be_a_key_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="cannot be hashed"):
        key_hashes([pa.array([None], kind)])


def test_prefix_is_the_first_bits_of_the_hash() -> None:
    hashes = np.array([0, 1 << 63, (1 << 64) - 1, 0xABCD << 48], np.uint64)
    assert hash_prefixes(hashes, 0).tolist() == [0, 0, 0, 0]
    assert hash_prefixes(hashes, 1).tolist() == [0, 1, 1, 1]
    assert hash_prefixes(hashes, 16).tolist() == [0, 0x8000, 0xFFFF, 0xABCD]
    assert hash_prefixes(hashes, 16).dtype == np.int32
