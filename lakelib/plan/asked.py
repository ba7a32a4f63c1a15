"""Frozen values: what people ask in SQL. Light, for most do without it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlglot import exp

from lakelib.dataclass import dataclass

Columns = Sequence[tuple[str, str]]
"""Names and types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A table where the query names it."""

    key: str
    """What it is called in the engine."""
    name: str
    """Namespace and table."""
    metadata: str | None = None
    """What of METADATA it is of the table."""
    at: int | str | datetime | None = None
    changes: Mapping[str, Any] | None = None
    """`after`, `until` and `view`, where its changes are asked for."""
    place: str = ""
    """Where it stands in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """A table that a statement changes."""

    name: str
    """Namespace and table."""
    place: str
    """Where it stands in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """The columns of a table, as the query sees them."""

    columns: Columns
    hidden: Columns = ()
    """Which are there if they are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuery:
    sql: str
    """The engine's: DuckDB's, over relations that are called as the references' keys are."""
    wide_sql: str
    """The same, with room for products that overflow in the other."""
    columns: tuple[tuple[str, str], ...]
    """Names and types."""
    types: tuple[str, ...]
    """Those of Spark, of which NULL has one of its own, "void"."""
    uses: Mapping[str, tuple[str, ...]]
    """By reference, the columns that the query looks at."""
    conditions: Mapping[str, tuple[exp.Expr, ...]]
    """By reference, what holds of all rows that can make a difference, in its own columns, parameters filled in."""
    bound: Mapping[str, Any]
    """What the text's parameters are bound to."""
    on_spark: bool = False
    """Whether it is said for Spark: in its text, which is a format, each reference's key in braces stands for a frame
    of its rows."""
