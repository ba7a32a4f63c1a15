"""What a driver on a cluster, and a client of Spark Connect, do with files of others: the same on every way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakelib import Lake, LakeError, Table
from lakelib.rows.unite import TargetColumns
from lakelib.work.spark.files import FileSource, find_all_files, open_files

WAYS = ("none", "hash", "frame")
_ROLES = frozenset(["id", "seq"])
_Put = Callable[[Path], str]
"""Puts files into a folder; their format."""
_Cases = dict[str, tuple[_Put, Callable[[Path], None] | None]]
"""What is delivered, and what becomes of it before it is read."""


def read_files(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """For each way what becomes of files that are as they should be, that lack the sequence, and that change."""
    good = _put([{"id": 1, "seq": 1, "name": "a"}, {"seq": 2.0, "ID": 1}, {"id": 2, "seq": 1}])
    cases: _Cases = {
        "good": (good, None),
        "lacking": (_put([{"id": 1, "seq": 9}, {"id": 1, "name": "lost"}]), None),
        "changed": (_put([{"id": 3, "seq": 1}]), _replace),
    }
    return _outcomes(spark, lake, given, cases, _ROLES)


def refuse_files(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """For each way what becomes of files that lack the partition's column, have one that the table does not know, go
    before they are read, and grow."""
    cases: _Cases = {
        "astray": (_put([{"id": 1, "day": 1, "version": 1}, {"id": 2, "version": 1}]), None),
        "unknown": (_put([{"id": 1, "day": 1}, {"id": 2, "day": 1, "colour": "red"}]), None),
        "gone": (_put([{"id": 1, "day": 1}, {"id": 2, "day": 1}]), lambda folder: (folder / "1.parquet").unlink()),
        "grown": (_put_text, _append),
    }
    return _outcomes(spark, lake, given, cases, frozenset(["id", "day"]))


def _outcomes(
    spark: SparkSession, lake: Lake, given: dict[str, Any], cases: _Cases, roles: frozenset[str]
) -> dict[str, dict[str, Any]]:
    table, folder = lake.table(given["table"]), Path(given["folder"])

    def tried(way: str, name: str) -> Any:
        put, meanwhile = cases[name]
        place = folder / way / name
        place.mkdir(parents=True)
        source = _opened(spark, lake, table, place, put(place), roles)
        if meanwhile is not None:
            meanwhile(place)
        try:
            _write(table, source, way)
        except LakeError as error:
            return error.kind
        return sorted(map(list, zip(*table.scan().to_arrow().to_pydict().values(), strict=True)))

    return {way: {name: tried(way, name) for name in cases} for way in WAYS}


def _opened(
    spark: SparkSession, lake: Lake, table: Table, folder: Path, format: str, roles: frozenset[str]
) -> FileSource:
    storage = lake.runtime.storage
    target = TargetColumns(columns=table._now().schema.columns, roles=roles, explicit_cast=True)
    files = find_all_files(storage, [str(folder)])
    return open_files(spark, storage, files, format, options={"header": "true"}, target=target)


def _write(table: Table, source: FileSource, way: str) -> None:
    if way == "frame":
        table.upsert(source.frame(), explicit_cast=True)
    else:
        table.upsert(source, distribution=way, explicit_cast=True)


# What is delivered


def _put(rows: list[dict[str, Any]]) -> _Put:
    """A Parquet file for each row."""

    def put(folder: Path) -> str:
        for number, row in enumerate(rows):
            pq.write_table(pa.Table.from_pylist([row]), folder / f"{number}.parquet")
        return "parquet"

    return put


def _put_text(folder: Path) -> str:
    (folder / "0.csv").write_text("id,day,version\n1,1,1")
    return "csv"


def _append(folder: Path) -> None:
    with (folder / "0.csv").open("a") as file:
        file.write("2\n")


def _replace(folder: Path) -> None:
    pq.write_table(pa.table({"id": range(1_000), "seq": range(1_000)}), folder / "0.parquet")
