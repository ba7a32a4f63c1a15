"""A disk that fills up in the middle of a file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import lakelib
from lakelib.storage.marker import MARKER_NAME
from tests.integration.storage.full_disk_job import PARTITIONS


@pytest.mark.parametrize("buckets", [1, 4])
def test_a_write_that_runs_out_of_room_says_so_and_leaves_nothing(
    catalog_url: str, tmp_path: Path, buckets: int
) -> None:
    with lakelib.connect(str(tmp_path), catalog_url) as lake:
        lake.create_namespace("n")
        table = lake.create_table(
            "n.t", "id bigint, p int, v bigint", primary_key=["id"], partition_by=["p"], buckets=buckets
        )
        command = [sys.executable, "-m", "tests.integration.storage.full_disk_job", str(tmp_path), catalog_url]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        assert (answer["type"], answer["seen"], answer["then"]) == ("RetryableError", 0, 10)
        assert f"{table.location}/p=2/" in answer["message"]
        assert table.scan().count() == 10
        assert len(table.history()) == 1
        live = {f"{table.location}/{file.path}".removeprefix("file://") for file in table.files()}
        assert len(live) == PARTITIONS
        stored = {str(path) for path in tmp_path.rglob("*") if path.is_file()}
        assert stored - {str(tmp_path / MARKER_NAME)} == live
