"""Arranging rows by partition and bucket, and cutting batches that are too large."""

import numpy as np
import pyarrow as pa
import pytest

from lakelib.model import sortable
from lakelib.model.schema import Column
from lakelib.rows.arrange import arrange_rows, deepen_parts
from lakelib.rows.buffers import cut_batch
from lakelib.rows.hash import hash_prefixes, key_hashes

ID = Column(id=1, name="id", type="bigint")
DAY = Column(id=2, name="day", type="int")


def batch_of(row_count: int, days: int = 1) -> pa.RecordBatch:
    return pa.record_batch(
        {"id": pa.array(range(row_count), pa.int64()), "day": pa.array([row % days for row in range(row_count)])}
    )


def ids_by_place(parts: list) -> dict:
    return {(part.partition_key, part.prefix): part.rows.column("id").to_pylist() for part in parts}


def expected_ids(batch: pa.RecordBatch, depth: int) -> dict:
    found: dict = {}
    prefixes = hash_prefixes(key_hashes([batch.column("id")]), depth).tolist()
    for number, day, prefix in zip(*(column.to_pylist() for column in batch.columns), prefixes, strict=True):
        found.setdefault(((sortable.encode("int", day),), prefix), []).append(number)
    return found


@pytest.mark.parametrize("depth", [0, 1, 5])
@pytest.mark.parametrize("days", [1, 7])
def test_a_part_holds_the_rows_of_its_partition_and_prefix_in_order(depth: int, days: int) -> None:
    batch = batch_of(300, days)
    assert ids_by_place(arrange_rows(batch, [DAY], [ID], depth)) == expected_ids(batch, depth)


def test_parts_that_would_be_small_are_split_by_partition_only() -> None:
    batch = batch_of(100, 5)
    assert {part.depth for part in arrange_rows(batch, [DAY], [ID], 2, least_part_rows=5)} == {2}
    shallow = arrange_rows(batch, [DAY], [ID], 2, least_part_rows=6)
    assert [(part.depth, part.prefix, part.row_count) for part in shallow] == [(0, 0, 20)] * 5


def test_parts_are_split_deeper_in_their_order() -> None:
    batch = batch_of(300, 3)
    halves = [*arrange_rows(batch.slice(0, 100), [DAY], [ID], 0), *arrange_rows(batch.slice(100), [DAY], [ID], 0)]
    first = sortable.encode("int", 0)
    deep = deepen_parts([part for part in halves if part.partition_key == (first,)], [ID], 4)
    assert ids_by_place(deep) == {key: ids for key, ids in expected_ids(batch, 4).items() if key[0] == (first,)}
    assert {part.depth for part in deep} == {4}


def test_a_batch_without_rows_has_no_parts_below_the_root() -> None:
    assert arrange_rows(batch_of(0), [DAY], [ID], 3) == []


def test_a_batch_is_cut_until_its_parts_are_small_or_one_row() -> None:
    texts = ["x" * (5000 if row == 70 else 10) for row in range(200)]
    batch = pa.record_batch({"s": texts})
    parts = list(cut_batch(batch, 1000))
    assert pa.concat_batches(parts) == batch
    assert all(part.nbytes <= 1000 or part.num_rows == 1 for part in parts)
    assert len(parts) < 30


def test_a_batch_that_fits_is_not_cut() -> None:
    batch = batch_of(10)
    assert list(cut_batch(batch, batch.nbytes)) == [batch]


def test_a_batch_of_shared_bytes_is_cut_evenly() -> None:
    dictionary = pa.array(["x" * 10_000, "y" * 10_000])
    codes = pa.array(np.arange(1000) % 2, pa.int32())
    batch = pa.record_batch({"s": pa.DictionaryArray.from_arrays(codes, dictionary)})
    parts = list(cut_batch(batch, 4000))
    assert pa.concat_batches(parts) == batch
    assert {part.num_rows for part in parts} == {1000 * 4000 // batch.nbytes, 1000 % (1000 * 4000 // batch.nbytes)} - {
        0
    }
