"""What a driver on a cluster, and a client of Spark Connect, do with files of others: the same on every way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakelib import Lake, LakeError, Table
from lakelib.distribute.files import FileSource, find_all_files, open_files
from lakelib.rows.unite import TargetColumns

WAYS = ("none", "hash", "frame")
_ROLES = frozenset(["id", "seq"])


def read_files(spark: SparkSession, lake: Lake, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """For each way what becomes of files that are as they should be, that lack the sequence, and that change."""
    folder = Path(given["folder"])
    return {way: _outcomes(spark, lake, lake.table(given["table"]), folder / way, way) for way in WAYS}


def _outcomes(spark: SparkSession, lake: Lake, table: Table, folder: Path, way: str) -> dict[str, Any]:
    def tried(name: str, rows: list[dict[str, Any]], meanwhile: Callable[[Path], None] | None = None) -> Any:
        place = folder / name
        place.mkdir(parents=True)
        for number, row in enumerate(rows):
            pq.write_table(pa.Table.from_pylist([row]), place / f"{number}.parquet")
        source = _opened(spark, lake, table, place)
        if meanwhile is not None:
            meanwhile(place)
        try:
            _write(table, source, way)
        except LakeError as error:
            return error.kind
        return sorted(map(list, zip(*table.scan().to_arrow().to_pydict().values(), strict=True)))

    return {
        "good": tried("good", [{"id": 1, "seq": 1, "name": "a"}, {"seq": 2.0, "ID": 1}, {"id": 2, "seq": 1}]),
        "lacking": tried("lacking", [{"id": 1, "seq": 9}, {"id": 1, "name": "lost"}]),
        "changed": tried("changed", [{"id": 3, "seq": 1}], _replace),
    }


def _opened(spark: SparkSession, lake: Lake, table: Table, folder: Path) -> FileSource:
    storage = lake.runtime.storage
    target = TargetColumns(columns=table._now().schema.columns, roles=_ROLES, explicit_cast=True)
    return open_files(spark, storage, find_all_files(storage, [str(folder)]), "parquet", target=target)


def _write(table: Table, source: FileSource, way: str) -> None:
    if way == "frame":
        table.upsert(source.frame(), explicit_cast=True)
    else:
        table.upsert(source, distribution=way, explicit_cast=True)


def _replace(folder: Path) -> None:
    pq.write_table(pa.table({"id": range(1_000), "seq": range(1_000)}), folder / "0.parquet")
