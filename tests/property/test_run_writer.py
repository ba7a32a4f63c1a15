"""Whatever the batches and the buckets: a writer's files hold the newest row of each key, where readers look for it."""

import tempfile
from collections import defaultdict
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelib.model.files import NewFile
from lakelib.model.options import TableOptions
from lakelib.model.schema import Column, TableSchema
from lakelib.model.table import Buckets
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import Storage, open_storage
from lakelib.storage.parquet import open_file
from lakelib.work import run_writer
from lakelib.work.run_writer import RunTarget, write_runs

ID, PART, VALUE = (
    Column(id=1, name="id", type="bigint"),
    Column(id=2, name="p", type="int"),
    Column(id=3, name="v", type="bigint"),
)
BUCKETS = st.sampled_from([Buckets(mode="postpone"), Buckets(mode="dynamic")]) | st.integers(0, 6).map(
    lambda depth: Buckets(mode="fixed", fixed_depth=depth)
)
BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), min_size=1, max_size=60), max_size=8)


def target_at(storage: Storage, buckets: Buckets, file_bytes: int) -> RunTarget:
    return RunTarget(
        location=storage.uri,
        schema=TableSchema(id=1, columns=(ID, PART, VALUE)),
        primary_key=(ID,),
        partition_by=(PART,),
        order_names=(),
        buckets=buckets,
        options=TableOptions(target_file_bytes=file_bytes, min_bucket_file_bytes=file_bytes),
        file_kind="upsert",
    )


def as_batches(drawn: list[list[tuple[int, int]]]) -> list[pa.RecordBatch]:
    """Later rows have higher values."""
    batches, first = [], 0
    for rows in drawn:
        ids, parts = zip(*rows, strict=True)
        values = range(first, first + len(rows))
        batches.append(
            pa.record_batch([pa.array(ids), pa.array(parts, pa.int32()), pa.array(values)], names=["id", "p", "v"])
        )
        first += len(rows)
    return batches


def check_place(file: NewFile, rows: pa.Table) -> None:
    ids = rows.column("id").to_pylist()
    assert ids == sorted(set(ids))
    assert set(hash_prefixes(key_hashes([rows.column("id")]), file.depth).tolist()) <= {file.prefix}
    assert {f"p={part}" for part in rows.column("p").to_pylist()} == {file.partition_path}


@given(
    drawn=BATCHES,
    buckets=BUCKETS,
    file_bytes=st.sampled_from([1, 200, 2000]),
    buffer_bytes=st.sampled_from([500, 3000, 10**9]),
    least_part_rows=st.sampled_from([0, 3, 1000]),
    arranged_rows=st.sampled_from([1, 40, 10_000]),
    small_rows=st.sampled_from([1, 50, 10_000]),
)
@settings(max_examples=60, deadline=None)
def test_files_hold_the_newest_row_of_each_key_where_readers_look(
    drawn: list[list[tuple[int, int]]],
    buckets: Buckets,
    file_bytes: int,
    buffer_bytes: int,
    least_part_rows: int,
    arranged_rows: int,
    small_rows: int,
) -> None:
    sizes = {"_LEAST_PART_ROWS": least_part_rows, "_ARRANGED_ROWS": arranged_rows, "_SMALL_ROWS": small_rows}
    found: dict[tuple[int, int], int] = {}
    with tempfile.TemporaryDirectory() as folder, patch.multiple(run_writer, **sizes):
        storage = open_storage(folder, StorageSettings())
        target = target_at(storage, buckets, file_bytes)
        files = write_runs(storage, target, as_batches(drawn), buffer_bytes=buffer_bytes, threads=2)
        by_run: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for file in sorted(files, key=lambda file: file.run):
            rows = open_file(storage, storage.uri, file.path).read_all()
            check_place(file, rows)
            keys = set(zip(rows.column("id").to_pylist(), rows.column("p").to_pylist(), strict=True))
            assert not keys & by_run[file.run]
            by_run[file.run] |= keys
            found |= {(row["id"], row["p"]): row["v"] for row in rows.to_pylist()}
    given_rows = [row for rows in drawn for row in rows]
    assert found == {row: place for place, row in enumerate(given_rows)}
