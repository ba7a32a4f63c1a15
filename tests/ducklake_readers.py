"""DuckDB that attaches a lake as a DuckLake: what a test compares with a scan. It knows nothing of lakelib."""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_ducklake
import duckdb_extension_httpfs
import duckdb_extension_postgres
import pyarrow as pa

from lakelib import Lake, Table


@cache
def _extensions() -> tuple[Path, ...]:
    """Of their wheels: nothing is downloaded. DuckDB takes the file's name for the extension's, and that of PostgreSQL
    has another one."""
    folder = Path(tempfile.mkdtemp(prefix="lakelib-duckdb-"))
    found = []
    for module, name, known_as in (
        (duckdb_extension_postgres, "postgres", "postgres_scanner"),
        (duckdb_extension_ducklake, "ducklake", "ducklake"),
        (duckdb_extension_httpfs, "httpfs", "httpfs"),
    ):
        (file,) = Path(module.__file__).parent.glob(f"extensions/*/{name}.duckdb_extension")
        found.append(Path(shutil.copy(file, folder / f"{known_as}.duckdb_extension")))
    return tuple(found)


def duckdb_with_ducklake() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect(config={"allow_unsigned_extensions": True})
    for extension in _extensions():
        db.execute(f"LOAD '{extension}'")
    db.execute("SET TimeZone = 'UTC'")
    return db


def attached(lake: Lake) -> duckdb.DuckDBPyConnection:
    """A DuckDB to which the lake is attached, under the name `lake`."""
    db = duckdb_with_ducklake()
    db.execute(lake.ducklake().attach)
    return db


def version_of(table: Table, snapshot_id: int) -> int:
    """What DuckLake calls a snapshot: the moment at which it was committed."""
    (moment,) = [each.committed_at for each in table.history() if each.id == snapshot_id]
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def read(db: Any, table: Table, snapshot_id: int | None = None, where: str = "true") -> pa.Table:
    namespace, name = table.name.split(".")
    at = "" if snapshot_id is None else f" AT (VERSION => {version_of(table, snapshot_id)})"
    return db.cursor().sql(f'SELECT * FROM lake."{namespace}"."{name}"{at} WHERE {where}').to_arrow_table()
