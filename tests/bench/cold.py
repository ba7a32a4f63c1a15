"""The measurement of a first scan: from the start of the program to the rows, of a lake that is there."""

import statistics
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa

from tests.bench.lab import Lab
from tests.bench.report import Line, at_most

_ROUNDS = 5
_SECONDS = 0.6
_PROGRAM = """
import sys, time
start = time.perf_counter()
import lakelib
lake = lakelib.connect(sys.argv[1], sys.argv[2])
assert lake.table("bench.greeting").scan().to_arrow().num_rows == 2
print(time.perf_counter() - start, time.process_time())
"""


def measure_cold(lab: Lab) -> Iterator[Line]:
    """`import lakelib`, connect and read a small table, in a new process; the server is up."""
    table = lab.lake.create_table("bench.greeting", "id bigint, text string", primary_key=["id"])
    for text in ("hello", "world"):
        table.upsert(pa.table({"id": [len(text), ord(text[0])], "text": [text, text]}))
    table.delete("id = 104")
    runs = [_run(lab) for _ in range(_ROUNDS)]
    seconds, processor = (statistics.median(column) for column in zip(*runs, strict=True))
    yield at_most(
        "import, connect, scan",
        f"{seconds:.2f} s",
        seconds,
        _SECONDS,
        "s",
        f"median of {_ROUNDS} processes; processor {processor:.2f} s, the interpreter's start included",
    )


def _run(lab: Lab) -> tuple[float, float]:
    command = [sys.executable, "-c", _PROGRAM, lab.warehouse, lab.catalog_url]
    seconds, processor = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(processor)
