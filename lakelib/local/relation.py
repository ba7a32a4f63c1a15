"""Rows as a relation of DuckDB's."""

from typing import Any

import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.local.arrow_source import ArrowSource, Read


def relation_of(schema: pa.Schema, read: Read, connection: Any = None) -> Any:
    """The rows in a connection, DuckDB's own if none is given, read each time that they are asked for: in the columns
    that are. Raises InvalidInputError where DuckDB is not installed."""
    try:
        import duckdb
    except ImportError:
        raise InvalidInputError(
            "DuckDB is not installed.", kind="duckdb_missing", remedy='pip install "lakelib[sql]"'
        ) from None
    return (duckdb.default_connection() if connection is None else connection).from_arrow(ArrowSource(schema, read))
