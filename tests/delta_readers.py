"""Engines that read a Delta log by themselves: what a test compares with a scan. None of them knows lakelib."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import polars
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

Reader = Callable[[str, int | None], pa.Table]
"""A table's folder and the version, or None for the newest."""


def read_duckdb(folder: str, version: int | None = None) -> pa.Table:
    given = "" if version is None else f", version => {version}"
    return duckdb_with_delta().cursor().sql(f"select * from delta_scan('{folder}'{given})").to_arrow_table()


def read_delta_rs(folder: str, version: int | None = None) -> pa.Table:
    table = DeltaTable(folder, version=version)
    found = QueryBuilder().register("told", table).execute("select * from told")
    return pa.table(found.read_all())


def read_polars(folder: str, version: int | None = None) -> pa.Table:
    return polars.scan_delta(folder, version=version).collect().to_arrow()


READERS: dict[str, Reader] = {"duckdb": read_duckdb, "delta-rs": read_delta_rs, "polars": read_polars}


@cache
def duckdb_with_delta() -> duckdb.DuckDBPyConnection:
    """With the extension of its wheel: nothing is downloaded."""
    (extension,) = Path(duckdb_extension_delta.__file__).parent.glob("extensions/*/delta.duckdb_extension")
    db = duckdb.connect(config={"allow_unsigned_extensions": True})
    db.execute(f"LOAD '{extension}'")
    db.execute("SET TimeZone = 'UTC'")
    return db


def rows_of(table: pa.Table) -> list[str]:
    """All rows as text, in an order of their own: types of one meaning are one."""
    names = sorted(table.column_names)
    columns = [_plain(table.column(name)) for name in names]
    return sorted(repr(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return pc.cast(column, pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_map(column.type):
        return [None if value is None else sorted(value) for value in column.to_pylist()]
    return column.to_pylist()


def folder_of(table: Any) -> str:
    return str(table.location).removeprefix("file://")
