"""Deleting by key where rows have a sequence that the keys do not tell: the rows are looked up first."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakelib.storage.filesystem import Storage
from tests.acceptance.support import NewTable

SCHEMA = pa.schema([("id", pa.int64()), ("code", pa.string()), ("day", pa.string()), ("at", pa.int64())])
_ROWS = 4000
_OPTIONS = {"min_bucket_file_bytes": 0}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that were opened, in order."""
    paths: list[str] = []
    open_input = Storage.open_input

    def noting(storage: Storage, path: str, **options: Any) -> pa.NativeFile:
        paths.append(path)
        return open_input(storage, path, **options)

    monkeypatch.setattr(Storage, "open_input", noting)
    return paths


def test_only_files_that_may_hold_a_key_are_opened_and_each_once(new_table: NewTable, opened: list[str]) -> None:
    table = new_table(SCHEMA, primary_key=["id"], sequence_by=["at"], buckets=16, options=_OPTIONS)
    table.upsert(_rows(range(_ROWS)))
    assert len(list(table.files())) == 16
    opened.clear()
    table.delete_keys(_keys_in_batches([7, 7, 7, 7]))
    assert len(set(opened)) == len(opened) == 1
    assert table.scan().count() == _ROWS - 1


def test_keys_of_several_columns_are_found_by_their_hash(new_table: NewTable, opened: list[str]) -> None:
    table = new_table(SCHEMA, primary_key=["id", "code"], sequence_by=["at"], buckets=16, options=_OPTIONS)
    table.upsert(_rows(range(_ROWS)))
    opened.clear()
    keys = pa.table({"id": [7, 8], "code": ["8", "8"]})  # (8, "8") is a key; (7, "8") and (8, "7") are none
    table.delete_keys(keys)
    assert len(opened) <= 2
    assert table.scan().count() == _ROWS - 1
    assert table.scan(where="id in (7, 8)").to_arrow().column("id").to_pylist() == [7]


@pytest.mark.parametrize("day", ["a", None])
def test_a_key_is_one_of_its_partition_alone(new_table: NewTable, day: str | None) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["day"], sequence_by=["at"])
    for place, other in enumerate(["a", "b", None]):
        table.upsert(pa.table([[1, 2], ["x", "x"], [other] * 2, [place] * 2], schema=SCHEMA))
    table.delete_keys(pa.table({"id": pa.array([1, 9]), "day": pa.array([day, "b"])}))
    left = {(row["id"], row["day"]) for row in table.scan().to_arrow().to_pylist()}
    assert left == {(number, other) for number in (1, 2) for other in ("a", "b", None)} - {(1, day)}


def test_a_newer_row_than_the_deleted_one_stays(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], sequence_by=["at"])
    table.upsert(_rows([1, 2], at=5))
    table.delete_keys(pa.table({"id": [1, 2]}))
    table.upsert(_rows([1], at=4))
    table.upsert(_rows([2], at=6))
    assert table.scan().to_arrow().column("id").to_pylist() == [2]


def test_more_keys_than_are_looked_for_at_once_are_all_deleted(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelib.ops.delete._KEYS_AT_ONCE", 100)
    table = new_table(SCHEMA, primary_key=["id"], sequence_by=["at"], buckets=4)
    table.upsert(_rows(range(1000)))
    table.delete_keys(_keys_in_batches(list(range(0, 1000, 2))))
    table.delete_keys(_keys(range(900, 1500)))
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == list(range(1, 900, 2))


def _rows(ids: Any, at: int = 1) -> pa.Table:
    ids = list(ids)
    return pa.table([ids, [str(number) for number in ids], ["a"] * len(ids), [at] * len(ids)], schema=SCHEMA)


def _keys(ids: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def _keys_in_batches(ids: list[int]) -> pa.RecordBatchReader:
    """A batch a key."""

    def batches() -> Iterator[pa.RecordBatch]:
        for number in ids:
            yield _keys([number]).to_batches()[0]

    return pa.RecordBatchReader.from_batches(_keys([]).schema, batches())
