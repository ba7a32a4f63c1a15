"""Engines that read a Delta log by themselves: what a test compares with a scan. None of them knows lakelib."""

import contextlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
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


def read_clickhouse(folder: str, version: int | None = None) -> pa.Table:
    import chdb  # heavy: `make soak` installs it for itself

    at = "" if version is None else f", delta_lake_snapshot_version = {version}"
    query = f"SELECT * FROM deltaLakeLocal('{folder}') SETTINGS output_format_arrow_string_as_string = 0{at}"
    with contextlib.chdir("/"):  # it reads below the folder that it is in
        return pa.ipc.open_file(chdb.query(query, "Arrow").bytes()).read_all()


READERS: dict[str, Reader] = {"duckdb": read_duckdb, "delta-rs": read_delta_rs, "polars": read_polars}
if find_spec("chdb"):
    READERS["clickhouse"] = read_clickhouse


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


def rows_in(reader: str, table: pa.Table) -> list[str]:
    """The rows as that reader has them: ClickHouse knows no NULL in place of a list, a map or a struct, and text is
    bytes to it."""
    if reader != "clickhouse":
        return rows_of(table)
    zoneless = [pa.timestamp("us") if pa.types.is_timestamp(each) else each for each in table.schema.types]
    columns = [column.cast(kind) for column, kind in zip(table.columns, zoneless, strict=True)]
    values = [
        [_in_clickhouse(value, kind) for value in _plain(each)] for each, kind in zip(columns, zoneless, strict=True)
    ]
    return sorted(repr(sorted(zip(table.column_names, row, strict=True))) for row in zip(*values, strict=True))


def _in_clickhouse(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {each.name: _in_clickhouse((value or {}).get(each.name), each.type) for each in kind}
    if pa.types.is_map(kind):
        return [(_in_clickhouse(key, kind.key_type), _in_clickhouse(item, kind.item_type)) for key, item in value or ()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_in_clickhouse(each, kind.value_type) for each in value or ()]
    return value.encode() if isinstance(value, str) else value


def _plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return pc.cast(column, pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_map(column.type):
        return [None if value is None else sorted(value) for value in column.to_pylist()]
    return column.to_pylist()


def folder_of(table: Any) -> str:
    return str(table.location).removeprefix("file://")
