"""The Bloom filters of key columns: written by pyarrow, asked by lakelib."""

import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib.model.options import TableOptions
from lakelib.model.schema import Column, TableSchema
from lakelib.settings import StorageSettings
from lakelib.storage import bloom
from lakelib.storage.filesystem import open_storage
from lakelib.storage.parquet import ParquetReader, open_file
from lakelib.storage.parquet_writer import write_file

_ROWS = 20_000
_DAY = datetime.date(1970, 1, 1)
_START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

_VALUES: dict[str, Any] = {
    "int": lambda number: number - _ROWS,
    "bigint": lambda number: number * 2**40 - 2**62,
    "string": lambda number: str(UUID(int=number * 2**64 + 7)) if number % 2 else f"ключ{number}",
    "binary": lambda number: number.to_bytes(40, "little"),
    "date": lambda number: _DAY + datetime.timedelta(days=number),
    "timestamp": lambda number: _START + datetime.timedelta(microseconds=number),
}
_ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


@pytest.mark.parametrize("type_text", list(_VALUES))
def test_every_value_of_a_row_group_is_admitted_and_nearly_all_others_are_not(tmp_path: Path, type_text: str) -> None:
    values = pa.array([_VALUES[type_text](number) for number in range(_ROWS * 2)], _ARROW[type_text])
    stored, others = values.take(pa.array(range(0, _ROWS * 2, 2))), values.take(pa.array(range(1, _ROWS * 2, 2)))
    reader = _write(tmp_path, type_text, stored)
    assert all(reader.may_hold(0, "k", stored.slice(row, 1)) for row in range(0, _ROWS, 7))
    admitted = sum(reader.may_hold(0, "k", others.slice(row, 1)) for row in range(0, _ROWS, 7))
    assert admitted < 2 * bloom.FALSE_HITS * (_ROWS / 7)


def test_one_admitted_value_among_several_is_enough(tmp_path: Path) -> None:
    reader = _write(tmp_path, "bigint", pa.array(range(_ROWS)))
    absent = [value for value in range(_ROWS, _ROWS + 100) if not reader.may_hold(0, "k", pa.array([value]))]
    assert not reader.may_hold(0, "k", pa.array(absent))
    assert reader.may_hold(0, "k", pa.array([*absent, 5]))


def test_a_file_without_a_filter_may_hold_anything(tmp_path: Path) -> None:
    reader = _write(tmp_path, "bigint", pa.array(range(bloom.LEAST_ROWS - 1)))
    assert reader.may_hold(0, "k", pa.array([-1]))


def test_a_column_of_repeated_values_gets_no_filter(tmp_path: Path) -> None:
    _write(tmp_path, "bigint", pa.array([row % 10 for row in range(_ROWS)]))
    assert pq.read_metadata(tmp_path / "f.parquet").row_group(0).column(0).bloom_filter_offset is None


def _write(folder: Path, type_text: str, values: pa.Array) -> ParquetReader:
    storage = open_storage(str(folder), StorageSettings())
    column = Column(id=1, name="k", type=type_text)
    schema = pa.schema([("k", values.type)])
    write_file(
        storage,
        "f.parquet",
        [pa.table([values], schema)],
        schema,
        TableSchema(id=1, columns=(column,)),
        TableOptions(),
        [column],
    )
    return open_file(storage, storage.uri, "f.parquet")
