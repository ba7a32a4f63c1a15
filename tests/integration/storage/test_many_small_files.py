"""A table after a day of small upserts: more files than a process may hold open."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import lakelib
from lakelib.storage import split_reader

FILES = 120
SPARE_HANDLES = 60


@pytest.mark.parametrize("rows_a_file", [1, 3])
def test_more_files_than_may_be_open_at_once_are_read(
    catalog_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_a_file: int
) -> None:
    monkeypatch.setattr(split_reader, "_MOST_OPEN_FILES", 20)
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
