"""A table after a day of small upserts: more files than a process may hold open."""

import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakelib
from lakelib.model.files import Split
from lakelib.ops.compact import compact
from lakelib.ops.read import ScanRequest, plan_scan, read_table
from lakelib.plan.scan import gather_splits
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import open_files
from lakelib.work import read
from lakelib.work.read import read_splits

FILES = 120
SPARE_HANDLES = 60


@pytest.mark.parametrize("rows_a_file", [1, 3])
def test_more_files_than_may_be_open_at_once_are_read(
    catalog_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_a_file: int
) -> None:
    monkeypatch.setattr(read, "_MOST_OPEN_FILES", 20)
    with lakelib.connect(warehouse=str(tmp_path), catalog=catalog_url) as lake:
        lake.create_namespace("n")
        table = lake.create_table(
            "n.t", "id bigint, v bigint", primary_key=["id"], buckets=1, options={"row_group_rows": 1}
        )
        for number in range(FILES):
            ids = range(number, number + rows_a_file)
            table.upsert(pa.table({"id": ids, "v": [number] * rows_a_file}))
        with _few_handles(SPARE_HANDLES):
            found = table.scan().to_arrow().sort_by("id").column("v").to_pylist()
    assert found == [min(number, FILES - 1) for number in range(FILES + rows_a_file - 1)]


@contextmanager
def _few_handles(spare: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + spare, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("key", [[], ["id"]])
def test_small_files_come_together(lake: lakelib.Lake, key: list[str]) -> None:
    """A hundred commits of a row are one batch, not a hundred, whatever the commits did in between."""
    table = lake.create_table(f"shop.together{len(key)}", "id bigint, v bigint, s string", primary_key=key)
    write = table.upsert if key else table.append
    for number in range(50):
        write(pa.table({"id": [number], "v": [number], "s": [f"{number}"]}))
    assert [batch.num_rows for batch in table.scan().to_batches()] == [50]
    assert [batch.num_rows for batch in table.scan(where="v >= 10").to_batches()] == [40]
    assert table.scan(columns=["_commit"]).to_arrow().column(0).to_pylist() == list(range(1, 51))
    assert table.scan(columns=["_commit"], where="id = 7").to_arrow().column(0).to_pylist() == [8]

    table.evolve(drop=["s"], add=["w double"])
    write(pa.table({"id": [7], "v": [70], "w": [0.5]}))
    table.delete("id = 8")
    rows = table.scan(where="id > 5 and id < 10").to_arrow().sort_by([("id", "ascending"), ("v", "ascending")])
    older = [] if key else [{"id": 7, "v": 7, "w": None}]
    expected = [{"id": 6, "v": 6, "w": None}, *older, {"id": 7, "v": 70, "w": 0.5}, {"id": 9, "v": 9, "w": None}]
    assert rows.to_pylist() == expected

    before = table.scan(columns=["id", "v", "w", "_commit"]).to_arrow()
    table.compact(full=True)
    assert len(list(table.files())) == 1
    assert table.scan(columns=["id", "v", "w", "_commit"]).to_arrow().equals(before)


@pytest.mark.parametrize("key", [[], ["id"]])
def test_many_small_files_of_one_split_are_read_on_several_threads(
    lake: lakelib.Lake, key: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the rows, their order and their commits are as if one had read them."""
    monkeypatch.setattr("lakelib.plan.scan._GATHERED_FILES", 3)
    table = lake.create_table(f"shop.ahead{len(key)}", "id bigint, v bigint", primary_key=key)
    write = table.upsert if key else table.append
    for number in range(20):
        write(pa.table({"id": [number % 7, 100 + number], "v": [number, number]}))
    table.delete("id = 3")
    columns = ("id", "v", "_commit")
    expected = table.scan(columns=list(columns)).to_arrow().to_pylist()
    readers = set[str]()
    monkeypatch.setattr("lakelib.work.small_files.open_files", _noting_threads(open_files, readers))
    several = replace(table._runtime, threads=40, read_threads=40)
    one = replace(table._runtime, threads=1, read_threads=1)

    for runtime in (one, several):
        plan = plan_scan(runtime, table._now(), ScanRequest(columns=columns))
        assert read_table(runtime, plan).to_pylist() == expected
        assert any(name.startswith("lakelib-ahead") for name in readers) == (bool(key) and runtime is several)
    compact(several, table._ref, full=True)
    assert any(name.startswith("lakelib-ahead") for name in readers)
    assert len(list(table.files())) == 1
    assert table.scan(columns=list(columns)).to_arrow().sort_by("_commit").to_pylist() == sorted(
        expected, key=lambda row: row["_commit"]
    )


def _noting_threads(call: Callable[..., Any], names: set[str]) -> Callable[..., Any]:
    def noting(*arguments: Any) -> Any:
        names.add(threading.current_thread().name)
        return call(*arguments)

    return noting


def test_buckets_of_different_depth_come_together_and_whole(lake: lakelib.Lake) -> None:
    table = lake.create_table(
        "shop.uneven", "id bigint", primary_key=["id"], buckets="dynamic", options={"min_bucket_file_bytes": 0}
    )
    ids = list(range(100))
    table.upsert(pa.table({"id": ids}))
    runtime = table._runtime
    plan = plan_scan(runtime, table._now(), ScanRequest())
    whole = [file for split in plan.splits for file in split.files]
    assert [file.depth for file in whole] == [0]

    def split(depth: int, prefix: int) -> Split:
        """As if the file had the rows of a bucket alone: each says that it is as deep as its split."""
        file = replace(whole[0], depth=depth, prefix=prefix)
        return Split(partition=plan.splits[0].partition, depth=depth, prefix=prefix, files=(file,))

    splits = [split(2, 0), split(2, 1), split(1, 1)]
    (together,) = gather_splits(splits, merges=True)
    rows = [
        row for rows in read_splits(runtime.storage, plan.target, together) for row in rows.column("id").to_pylist()
    ]
    assert rows == ids * 3


def test_small_files_of_a_distant_store_are_fetched_whole_and_at_the_same_time(
    s3_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for number in range(16):
        buffer = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [number]}), buffer)
        content = buffer.getvalue().to_pybytes()
        s3_storage.write_bytes(f"{number}.parquet", content)
        files.append((f"{number}.parquet", len(content)))
    everybody, opened = threading.Barrier(len(files), timeout=20), list[str]()
    open_input = Storage.open_input

    def wait_for_the_others(storage: Storage, path: str, **options: Any) -> pa.NativeFile:
        opened.append(path)
        everybody.wait()
        return open_input(storage, path, **options)

    monkeypatch.setattr(Storage, "open_input", wait_for_the_others)
    readers = open_files(s3_storage, s3_storage.uri, files)
    assert [reader.read_all().column("id").to_pylist() for reader in readers] == [[number] for number in range(16)]
    assert sorted(opened) == sorted(path for path, _ in files)
