"""One contract for every way from a source to a table: the same rows, or a refusal of the same kind.

The ways are those of `ingest`: straight into runs, through a query that changes nothing, and through Spark's shuffle,
which takes over from a size on. What a case means does not depend on the format, but for what the format cannot say.
"""

import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib import Lake
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from lakelib.work.spark.files import open_files
from tests.conftest import BUCKET, WHOLE_MATRICES
from tests.jobs.conftest import RunJob, rows_of

KEY = "2026-11-18"
DAY, OTHER = date(2026, 11, 18), date(2026, 11, 17)
_NUMBERS = count()

Row = Mapping[str, Any]
File = Sequence[Row] | bytes
"""Rows of like columns, or what the file holds."""

PATHS = ("plain", "transform", "large")
FORMATS = ("parquet", "csv", "json")


@dataclass(frozen=True, kw_only=True)
class Case:
    files: Sequence[File]
    rows: Sequence[tuple[Any, ...]] | None = None
    """id, dt, seq and name, as the table has them in the end; None where the source is refused."""
    kind: str | None = None
    formats: Sequence[str] = FORMATS
    spec: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[str] = ()
    """Of the files, where it matters."""


def row(number: int, seq: int | None = 1, name: str | None = "a", **more: Any) -> dict[str, Any]:
    return {"id": number, "dt": KEY, "seq": seq, "name": name, **more}


def without(given: Row, *names: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


CASES = {
    "files of one kind": Case(
        files=[[row(1), row(2)], [row(3)]],
        rows=[(1, DAY, 1, "a"), (2, DAY, 1, "a"), (3, DAY, 1, "a")],
    ),
    "a file without the sequence": Case(
        files=[[row(1, seq=5)], [without(row(1, name="new"), "seq")]], kind="missing_column"
    ),
    "a first file without the sequence": Case(files=[[without(row(1), "seq")], [row(1, seq=5)]], kind="missing_column"),
    "a file without the key": Case(files=[[row(1)], [without(row(2), "id")]], kind="missing_column"),
    "no file with the sequence": Case(files=[[without(row(1), "seq")]], kind="missing_column"),
    "a file without the partition's column": Case(
        files=[[row(1, dt="2026-11-17")], [without(row(2), "dt")]], rows=[(1, OTHER, 1, "a"), (2, DAY, 1, "a")]
    ),
    "a first file without the partition's column": Case(
        files=[[without(row(2), "dt")], [row(1, dt="2026-11-17")]], rows=[(1, OTHER, 1, "a"), (2, DAY, 1, "a")]
    ),
    "no file with the partition's column": Case(files=[[without(row(1), "dt")]], rows=[(1, DAY, 1, "a")]),
    "a file without a column that may be NULL": Case(
        files=[[row(1)], [without(row(2), "name")]], rows=[(1, DAY, 1, "a"), (2, DAY, 1, None)]
    ),
    "a first file without a column that may be NULL": Case(
        files=[[without(row(1), "name")], [row(2)]], rows=[(1, DAY, 1, None), (2, DAY, 1, "a")]
    ),
    "no file with a column that may be NULL": Case(
        files=[[without(row(1), "name")], [without(row(2), "name")]], rows=[(1, DAY, 1, None), (2, DAY, 1, None)]
    ),
    "a file without a column that may not be NULL": Case(
        files=[[row(1)], [without(row(2), "name")]],
        spec={"columns": "id BIGINT, dt DATE, seq BIGINT, name STRING NOT NULL"},
        kind="missing_column",
    ),
    "a column that nobody knows": Case(files=[[row(1)], [row(2, more=1)]], kind="unknown_column"),
    "a column that nobody knows, in the first file": Case(files=[[row(1, more=1)], [row(2)]], kind="unknown_column"),
    "new columns of a table that takes them": Case(
        files=[[row(1, more="x")], [row(2, other="y")], [row(3)]],
        spec={"write": "{merge_schema: true}"},
        rows=[(1, DAY, 1, "a"), (2, DAY, 1, "a"), (3, DAY, 1, "a")],
    ),
    "new columns of two types": Case(
        files=[[row(1, more=1)], [row(2, more="y")]],
        spec={"write": "{merge_schema: true}"},
        formats=["parquet", "json"],
        kind="wrong_type",
    ),
    "another order and case of names": Case(
        files=[[row(1)], [{"SEQ": 2, "Name": "b", "DT": KEY, "iD": 2}]], rows=[(1, DAY, 1, "a"), (2, DAY, 2, "b")]
    ),
    "names that differ by case in one file": Case(files=[[row(1)], [{**row(2), "SEQ": 9}]], kind="duplicate_column"),
    "types that become the table's": Case(
        files=[[row(1, seq=1)], [row("2", seq="2")], [row(3, seq=Decimal(3))]],
        formats=["parquet"],
        rows=[(1, DAY, 1, "a"), (2, DAY, 2, "a"), (3, DAY, 3, "a")],
    ),
    "types that do not become the table's": Case(
        files=[[row(1)], [row(2, seq=date(2026, 1, 1))]], formats=["parquet"], kind="wrong_type"
    ),
    "types that must not change unasked": Case(
        files=[[row(1)], [row(2, seq="2")]],
        formats=["parquet"],
        spec={"write": "{explicit_cast: false}"},
        kind="wrong_type",
    ),
    "a value that does not convert": Case(
        files=[[row(1)], [row(2), row(3, seq="x")]], formats=["csv"], kind="wrong_value"
    ),
    "a number in hexadecimal": Case(files=[[row(1, seq="0x10")]], formats=["csv", "parquet"], kind="wrong_value"),
    "a day that is none": Case(files=[[row(1)], [row(3, dt="tomorrow")]], formats=["csv", "json"], kind="wrong_value"),
    "no Parquet": Case(files=[[row(1)], b"PAR1 nonsense PAR1"], formats=["parquet"], kind="unreadable_file"),
    "a line that is none": Case(files=[[row(1)], b'{"id": 1,\n'], formats=["json"], kind="unreadable_file"),
    "a key that is NULL": Case(files=[[row(1)], [row(2), row(None)]], formats=["parquet", "json"], kind="null_value"),
    "rows of another partition": Case(
        files=[[row(1)], [row(2, dt="2026-11-17")]],
        spec={"partition": "{column: dt, every: day, strict: true}"},
        kind="row_outside_partition",
    ),
    "declared columns, a file without the sequence": Case(
        files=[[row(1)], [without(row(1, name="b"), "seq")]],
        spec={"source.columns": "id BIGINT, dt DATE, seq BIGINT, name STRING"},
        kind="missing_column",
    ),
    "declared columns": Case(
        files=[[row(1, more=1)], [without(row(2), "name")]],
        spec={"source.columns": "id BIGINT, dt STRING, seq BIGINT, name STRING"},
        rows=[(1, DAY, 1, "a"), (2, DAY, 1, None)],
    ),
    "of rows of a key the one of the higher sequence": Case(
        files=[[row(1, seq=9, name="high")], [row(1, seq=3, name="low")]], rows=[(1, DAY, 9, "high")]
    ),
    "of rows of a key the later file's": Case(
        files=[[row(1, name="x")], [row(1, name="y"), row(1, name="z")]], rows=[(1, DAY, 1, "z")]
    ),
    "an empty first file": Case(files=[b"", [row(1)]], formats=["csv", "json"], rows=[(1, DAY, 1, "a")]),
    "a first file of one newline": Case(
        files=[b"\n", [row(1)], b"\n\n"], formats=["csv", "json"], rows=[(1, DAY, 1, "a")]
    ),
    "a first file that is a gzip of nothing": Case(
        files=[gzip.compress(b""), [row(1)]],
        names=["0.csv.gz", "1.csv"],
        formats=["csv", "json"],
        rows=[(1, DAY, 1, "a")],
    ),
    "a first file of other columns and no row": Case(
        files=[b"what,ever\n", [row(1)]], formats=["csv"], rows=[(1, DAY, 1, "a")]
    ),
    "gzip in capitals": Case(
        files=[gzip.compress(b"id,dt,seq,name\n1,2026-11-18,1,a\n")],
        names=["0.CSV.GZ"],
        formats=["csv"],
        rows=[(1, DAY, 1, "a")],
    ),
    "nothing but files without rows": Case(
        files=[b"\n", gzip.compress(b"")], names=["0.csv", "1.csv.gz"], formats=["csv", "json"], kind="empty_source"
    ),
    "files that are being copied": Case(
        files=[[row(1)], b"half", b"half", b"half"],
        names=["0.data", "1.data._COPYING_", "2.data.tmp", "3.data.inprogress"],
        rows=[(1, DAY, 1, "a")],
    ),
}


def content(format: str, rows: Sequence[Row]) -> bytes:
    names = list(rows[0])
    if format == "json":
        return "".join(json.dumps(each) + "\n" for each in rows).encode()
    if format == "csv":
        lines = [
            ",".join(names),
            *(",".join(str(value) if value is not None else "" for value in each.values()) for each in rows),
        ]
        return ("\n".join(lines) + "\n").encode()
    out = io.BytesIO()
    pq.write_table(pa.table({name: [each[name] for each in rows] for name in names}), out)
    return out.getvalue()


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where sources are delivered."""

    uri: str
    settings: StorageSettings

    def deliver(self, case: Case, format: str) -> str:
        folder = f"{self.uri}/{uuid4().hex}"
        storage = open_storage(folder, self.settings)
        names = case.names or [f"{number}.data" for number in range(len(case.files))]
        for name, each in zip(names, case.files, strict=True):
            storage.write_bytes(f"{KEY}/{name}", each if isinstance(each, bytes) else content(format, each))
        return folder


@pytest.fixture
def local(tmp_path: Path) -> Place:
    return Place(uri=f"file://{tmp_path}", settings=StorageSettings())


@pytest.fixture
def s3(s3_settings: StorageSettings, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("LAKE_S3_ENDPOINT", str(s3_settings.s3_endpoint))
    monkeypatch.setenv("LAKE_S3_REGION", "us-east-1")
    monkeypatch.setenv("LAKE_S3_ACCESS_KEY_ID", str(s3_settings.s3_access_key))
    monkeypatch.setenv("LAKE_S3_SECRET_ACCESS_KEY", str(s3_settings.s3_secret_key))
    return Place(uri=f"s3://{BUCKET}", settings=s3_settings)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What became of a source."""

    rows: list[tuple[Any, ...]] | None = None
    kind: str | None = None
    message: str = ""


Ingest = Callable[..., Result]


@pytest.fixture
def ingest(run_job: RunJob, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ingest:
    def run(folder: str, format: str, path: str, spec: Mapping[str, str]) -> Result:
        monkeypatch.setattr("lakelib.work.spark.write._RUN_BYTES", 1 if path.startswith("large") else 2**40)
        name = f"shop.t{next(_NUMBERS)}"
        file = tmp_path / "spec.yaml"
        file.write_text(_spec(name, folder, format, path, spec))
        (tmp_path / "same.sql").write_text("SELECT * FROM source")
        ran = run_job("ingest", "--spec", file, "--partition", KEY, "--idempotency-key", f"{name}:1")
        if ran.code:
            return Result(kind=ran.facts["error"]["kind"], message=ran.facts["error"]["message"])
        lake.staged(UUID(ran.facts["commit"])).publish()
        return Result(rows=rows_of(lake.table(name), "id", "dt", "seq", "name"))

    return run


def _spec(name: str, folder: str, format: str, path: str, more: Mapping[str, str]) -> str:
    source = {"format": format, "path": f"'{folder}/{{partition}}/'", "arrival": "{marker: null}"}
    source |= {"options": "{header: 'true'}"} if format == "csv" else {}
    source |= {"columns": f"'{more['source.columns']}'"} if "source.columns" in more else {}
    fields = {
        "table": name,
        "columns": "id BIGINT, dt DATE, seq BIGINT, name STRING",
        "primary_key": "[id]",
        "partition_by": "[dt]",
        "buckets": "2",
        "sequence_by": "[seq]",
        "partition": "{column: dt, every: day}",
        "source": "{" + ", ".join(f"{each}: {value}" for each, value in source.items()) + "}",
    }
    fields |= {each: value for each, value in more.items() if "." not in each}
    fields |= {"transform": "same.sql"} if "transform" in path else {}
    return "".join(f"{each}: {value}\n" for each, value in fields.items())


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("what", CASES)
def test_every_way_gives_the_same_rows_or_refuses_the_same(
    what: str, format: str, local: Place, ingest: Ingest
) -> None:
    check_ways(CASES[what], format, local, ingest, ways_in_turn(what, format))


def ways_in_turn(what: str, format: str) -> Sequence[str]:
    """Straight into runs, and one of the others: a case that has several formats goes each way."""
    formats = CASES[what].formats
    if WHOLE_MATRICES or len(formats) == 1 or format not in formats:
        return PATHS
    return "plain", PATHS[1 + (list(CASES).index(what) + formats.index(format)) % 2]


@pytest.mark.parametrize("format", FORMATS if WHOLE_MATRICES else ["csv", "parquet"])
@pytest.mark.parametrize(
    "what",
    [
        "files of one kind",
        "a file without the sequence",
        "a file without the partition's column",
        "an empty first file",
        "another order and case of names",
        "files that are being copied",
    ],
)
def test_a_source_on_s3_is_as_good_as_a_local_one(what: str, format: str, s3: Place, ingest: Ingest) -> None:
    check_ways(CASES[what], format, s3, ingest, ways_in_turn(what, format))


def check_ways(case: Case, format: str, place: Place, ingest: Ingest, paths: Sequence[str]) -> None:
    if format not in case.formats:
        return
    folder = place.deliver(case, format)
    found = {path: ingest(folder, format, path, case.spec) for path in paths}
    rows = None if case.rows is None else sorted(case.rows, key=repr)
    assert {path: (each.rows, each.kind) for path, each in found.items()} == dict.fromkeys(paths, (rows, case.kind)), (
        found
    )


@pytest.mark.parametrize(
    ("place", "format"),
    [("local", "csv"), ("local", "json"), ("s3", "parquet")]
    if not WHOLE_MATRICES
    else [(place, format) for place in ("local", "s3") for format in FORMATS],
)
def test_a_source_that_changes_after_it_was_listed_is_for_another_try(
    place: str, format: str, request: pytest.FixtureRequest, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = request.getfixturevalue(place)
    folder = found.deliver(Case(files=[[row(number) for number in range(100)], [row(100)]]), format)

    def replaced(*arguments: Any, **named: Any) -> Any:
        opened = open_files(*arguments, **named)
        open_storage(folder, found.settings).write_bytes(f"{KEY}/0.data", content(format, [row(1), row(2)]))
        return opened

    monkeypatch.setattr("lakelib.pipeline.sources.open_files", replaced)
    for path in ("plain", "transform", "large"):
        assert ingest(folder, format, path, {}).kind == "source_changed"
        open_storage(folder, found.settings).write_bytes(
            f"{KEY}/0.data", content(format, [row(number) for number in range(100)])
        )
