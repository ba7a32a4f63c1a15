"""The memory that a partition of JSON with very long lines takes: what it is read and written in is bounded by blocks,
buffers and batches, however much there is. Each way in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import lakelib
from lakelib import Table
from lakelib.rows.unite import TargetColumns
from lakelib.work.spark.files import FileSource, find_all_files, open_files
from tests.bench.lab import Lab, resident_mb
from tests.bench.report import Line, at_most, show_seconds
from tests.bench.spark import open_session

_LINE_BYTES = 10_000_000
_LINES = 100
_QUICK_DIVISOR = 10
_FILES = 2
"""One for each task that runs at once."""

_DDL = "id BIGINT NOT NULL, body STRING, readings ARRAY<DOUBLE>"
_JVM_HEAP = "1g"
_MOST_MB = 1_500
"""Of a process of Python: 100 MB at its start, 50 for a block of lines and its rows, the rows of a run and their copy
by bucket (a task's run has 270: 2 × 270), the sorted rows and the pages of one file (2 × 70), and half as much again
that the allocator keeps."""

_MOST_JVM_MB = 2_000
"""The heap, the JVM itself, and for each task a batch of rows on its way to Python and one that came from there."""

_EVERY_SECONDS = 0.02


def measure_long_lines(lab: Lab) -> Iterator[Line]:
    source = lab.folder / "long-lines"
    size_bytes = _deliver(source, _LINES // (_QUICK_DIVISOR if lab.quick else 1))
    for way in _WAYS:
        command = [sys.executable, "-m", "tests.bench.long_lines", way, str(source), lab.warehouse, lab.catalog_url]
        answer = json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
        )
        title = f"{size_bytes / 1e9:.1f} GB of 10 MB lines, {way}"
        shown, peaks = show_seconds(answer["seconds"]), answer["peaks_mb"]
        told = ", ".join(f"{each:.0f}" for each in sorted(peaks["python"], reverse=True))
        yield at_most(title, shown, max(peaks["python"]), _MOST_MB, "MB", f"peak of a Python process; of each: {told}")
        if peaks["java"]:
            note = f"peak of the JVM, whose heap is {_JVM_HEAP}"
            yield at_most(f"{title}: JVM", shown, max(peaks["java"]), _MOST_JVM_MB, "MB", note)
    shutil.rmtree(source)


def _deliver(folder: Path, lines: int) -> int:
    """Half of each line is a text, half are numbers."""
    folder.mkdir()
    random = np.random.default_rng(1)
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz      ", np.uint8)
    for number in range(_FILES):
        with (folder / f"{number}.json").open("wb") as file:
            for line in range(number * lines // _FILES, (number + 1) * lines // _FILES):
                body = letters[random.integers(0, len(letters), _LINE_BYTES // 2, np.uint8)].tobytes()
                readings = ",".join(map(str, random.integers(0, 10**9, _LINE_BYTES // 20).tolist())).encode()
                file.write(b'{"id": %d, "body": "%s", "readings": [%s]}\n' % (line, body, readings))
    return sum(file.stat().st_size for file in folder.iterdir())


# In a process of its own


def _in_process(table: Table, opened: Callable[[Any], FileSource]) -> None:
    source = opened(None)
    table.upsert(pa.RecordBatchReader.from_batches(source.schema, source.batches()), explicit_cast=True)


def _by_tasks(table: Table, opened: Callable[[Any], FileSource]) -> None:
    with open_session({"spark.driver.memory": _JVM_HEAP}) as session:
        table.upsert(opened(session), distribution="none", explicit_cast=True)


def _through_a_query(table: Table, opened: Callable[[Any], FileSource]) -> None:
    with open_session({"spark.driver.memory": _JVM_HEAP}) as session:
        opened(session).frame().createOrReplaceTempView("source")
        frame = session.sql("SELECT id, upper(body) AS body, readings FROM source")
        table.upsert(frame, distribution="none", explicit_cast=True)


def _shuffled(table: Table, opened: Callable[[Any], FileSource]) -> None:
    with open_session({"spark.driver.memory": _JVM_HEAP}) as session:
        table.upsert(opened(session), distribution="hash", explicit_cast=True)


_WAYS: dict[str, Callable[[Table, Callable[[Any], FileSource]], None]] = {
    "in process": _in_process,
    "Spark": _by_tasks,
    "Spark, a query": _through_a_query,
    "Spark, shuffled": _shuffled,
}


def _measure_alone(way: str, source: str, warehouse: str, catalog_url: str) -> dict[str, Any]:
    with lakelib.connect(warehouse, catalog_url) as lake:
        table = lake.create_table("bench.long_lines", _DDL, primary_key=["id"], buckets=4)

        def opened(session: Any) -> FileSource:
            storage = lake.runtime.storage
            target = TargetColumns(columns=table._now().schema.columns, roles=frozenset(["id"]), explicit_cast=True)
            return open_files(session, storage, find_all_files(storage, [source]), "json", target=target)

        start = time.perf_counter()
        with _watched() as peaks:
            _WAYS[way](table, opened)
        seconds = time.perf_counter() - start
        lines = sum(file.read_bytes().count(b"\n") for file in Path(source).iterdir())
        assert sum(file.row_count for file in table.files()) == lines
        lake.drop_table(table.name)
        shutil.rmtree(table.location.removeprefix("file://"))
    named = {name: [mb for (found, _), mb in peaks.items() if found.startswith(name)] for name in ("python", "java")}
    return {"seconds": seconds, "peaks_mb": named}


@contextmanager
def _watched() -> Iterator[dict[tuple[str, int], float]]:
    """The peaks of resident memory of this process and of those below it, by name and id, in MB (10^6 bytes)."""
    peaks: dict[tuple[str, int], float] = {}
    ended = threading.Event()

    def watch() -> None:
        own = psutil.Process()
        while not ended.wait(_EVERY_SECONDS):
            for process in (own, *own.children(recursive=True)):
                with suppress(psutil.Error, OSError, RuntimeError):  # it has ended meanwhile
                    peaks[process.name(), process.pid] = resident_mb("VmHWM", process.pid)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        ended.set()
        watcher.join()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    print(json.dumps(_measure_alone(*sys.argv[1:])))
