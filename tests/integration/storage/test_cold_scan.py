"""What the first scan of a process loads: a program that reads a small table starts quickly."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import lakelib

_NOT_NEEDED = ("boto3", "great_expectations", "pandas", "pydantic", "pyspark", "rich", "typer")
_PROGRAM = f"""
import sys
import lakelib
with lakelib.connect(sys.argv[1], sys.argv[2]) as lake:
    assert lake.table("n.t").scan().to_arrow().num_rows == 2
print(*sorted(sys.modules.keys() & {set(_NOT_NEEDED)}))
"""


def test_a_scan_that_merges_loads_nothing_that_it_does_not_need(catalog_url: str, tmp_path: Path) -> None:
    """pyarrow imports pandas, where that is installed, for the first array that is made of Python's values."""
    with lakelib.connect(tmp_path, catalog_url) as lake:
        lake.create_namespace("n")
        table = lake.create_table("n.t", "id bigint, s string", primary_key=["id"])
        for ids in ([1, 2], [2, 3]):
            table.upsert(pa.table({"id": ids, "s": ["a", "b"]}))
        table.delete("id = 1")
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path), catalog_url]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == []
