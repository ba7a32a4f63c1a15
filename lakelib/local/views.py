"""A DuckDB file with views of tables that have a Delta log. It has no rows and no credentials: who opens it reads the
lake as it is then."""

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.rows.types import plain_schema

_SHAPE = "lakelib_shape"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A table as it is to be seen."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    place: str
    """Its folder, as DuckDB reads it."""


def write_views(path: Path, views: Sequence[View]) -> None:
    """The file is there as a whole, or as it was. Raises InvalidInputError where DuckDB is not installed."""
    try:
        import duckdb
    except ImportError:
        raise InvalidInputError(
            "A file of DuckDB's is written by DuckDB, which is not installed.",
            kind="duckdb_missing",
            remedy='pip install "lakelib[local]"',
        ) from None
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        draft = Path(folder) / "draft.duckdb"
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        with duckdb.connect(str(draft), config=settings) as db:
            for statement in _statements(views):
                db.execute(statement)
            for view in views:
                # The extension that reads Delta need not be here: something of its name has the columns that it will
                # find.
                db.register(_SHAPE, plain_schema(view.columns).empty_table())
                db.execute(f"CREATE OR REPLACE TEMP TABLE shape AS FROM {_SHAPE}")
                db.execute("CREATE OR REPLACE TEMP MACRO delta_scan(place) AS TABLE FROM shape")
                db.execute(f"CREATE VIEW {_name(view)} AS FROM delta_scan({_text(view.place)})")
                db.unregister(_SHAPE)
        os.replace(draft, path)


def _statements(views: Iterable[View]) -> list[str]:
    return [f"CREATE SCHEMA IF NOT EXISTS {_quoted(name)}" for name in dict.fromkeys(view.schema for view in views)]


def _name(view: View) -> str:
    return f"{_quoted(view.schema)}.{_quoted(view.name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
