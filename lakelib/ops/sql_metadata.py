"""What is known of a table, as rows that a query may be of: `shop.orders$snapshots` and its like."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pyarrow as pa

from lakelib.catalog import gates
from lakelib.dataclass import dataclass
from lakelib.model.table import CommitState, TableInfo
from lakelib.ops import consumers, inspect, snapshots
from lakelib.ops.read import At
from lakelib.ops.runtime import Runtime
from lakelib.rows.types import arrow_type

Columns = tuple[tuple[str, str], ...]
"""Names and types."""

_MOST_COMMITS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    columns: Columns
    rows: Callable[[Runtime, TableInfo, At], Iterable[Any]]
    """Values that have attributes called as the columns are, or a mapping of them."""


def read_metadata(runtime: Runtime, table: TableInfo, kind: str, at: At) -> pa.Table:
    """As it is at this moment; files and partitions as of a snapshot."""
    known = _KINDS[kind]
    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in known.columns])
    rows = [{name: _plain(_value(each, name)) for name, _ in known.columns} for each in known.rows(runtime, table, at)]
    return pa.Table.from_pylist(rows, schema=schema)


def _value(row: Any, name: str) -> Any:
    return row[name] if isinstance(row, Mapping) else getattr(row, name)


def _plain(value: Any) -> Any:
    """As a column can have it: what has parts is JSON."""
    match value:
        case UUID() | Enum():
            return str(value.value if isinstance(value, Enum) else value)
        case timedelta():
            return int(value.total_seconds())
        case None | bool() | int() | float() | str() | datetime():
            return value
        case _:
            return json.dumps(value, default=_json_value, sort_keys=True)


def _json_value(value: Any) -> Any:
    match value:
        case date() | Decimal() | UUID():
            return str(value)
        case bytes():
            return value.hex()
        case Mapping():
            return dict(value)
    return str(value)


def _consumers(runtime: Runtime, table: TableInfo, _: At) -> Iterable[Any]:
    for each in consumers.list_consumers(runtime, table):
        yield {name: getattr(each, name) for name in _OWN_OF_CONSUMERS} | {
            "lag_snapshots": each.lag.snapshots,
            "lag_rows": each.lag.rows,
            "lag_seconds": each.lag.age,
            "keep_for_seconds": each.keep_for,
        }


def _verdicts(runtime: Runtime, table: TableInfo, _: At) -> Iterable[Any]:
    for each in gates.list_verdicts(runtime.catalog, table.id):
        yield {name: getattr(each, name) for name in _OWN_OF_VERDICTS} | {
            "checks": len(each.checks),
            "failed_checks": ", ".join(check.name for check in each.checks if check.status.value != "passed"),
        }


_OWN_OF_CONSUMERS = ("name", "position", "head", "holds", "created_at", "created_by", "advanced_at", "advanced_by")
_OWN_OF_VERDICTS = ("commit_id", "gate", "suite_hash", "outcome", "base_snapshot_id", "engine", "seconds", "judged_at")

_KINDS: Mapping[str, Metadata] = {
    "snapshots": Metadata(
        columns=(
            ("id", "bigint"),
            ("kind", "string"),
            ("committed_at", "timestamp"),
            ("schema_id", "bigint"),
            ("commit_id", "string"),
            ("summary", "string"),
            ("properties", "string"),
        ),
        rows=lambda runtime, table, _: inspect.list_history(runtime, table),
    ),
    "files": Metadata(
        columns=(
            ("path", "string"),
            ("partition", "string"),
            ("row_count", "bigint"),
            ("delete_count", "bigint"),
            ("size_bytes", "bigint"),
            ("depth", "int"),
            ("prefix", "bigint"),
            ("level", "int"),
            ("added_snapshot", "bigint"),
        ),
        rows=inspect.list_files,
    ),
    "partitions": Metadata(
        columns=(
            ("values", "string"),
            ("path", "string"),
            ("files", "bigint"),
            ("stored_rows", "bigint"),
            ("size_bytes", "bigint"),
            ("newest_snapshot", "bigint"),
        ),
        rows=inspect.list_partitions,
    ),
    "tags": Metadata(
        columns=(
            ("name", "string"),
            ("snapshot_id", "bigint"),
            ("created_at", "timestamp"),
            ("until", "timestamp"),
            ("keep_last", "int"),
            ("family", "string"),
        ),
        rows=lambda runtime, table, _: snapshots.list_tags(runtime, table),
    ),
    "verdicts": Metadata(
        columns=(
            ("commit_id", "string"),
            ("gate", "string"),
            ("suite_hash", "string"),
            ("outcome", "string"),
            ("base_snapshot_id", "bigint"),
            ("engine", "string"),
            ("seconds", "double"),
            ("judged_at", "timestamp"),
            ("checks", "int"),
            ("failed_checks", "string"),
        ),
        rows=_verdicts,
    ),
    "consumers": Metadata(
        columns=(
            ("name", "string"),
            ("position", "bigint"),
            ("head", "bigint"),
            ("lag_snapshots", "bigint"),
            ("lag_rows", "bigint"),
            ("lag_seconds", "bigint"),
            ("keep_for_seconds", "bigint"),
            ("holds", "bigint"),
            ("created_at", "timestamp"),
            ("created_by", "string"),
            ("advanced_at", "timestamp"),
            ("advanced_by", "string"),
        ),
        rows=_consumers,
    ),
    "commits": Metadata(
        columns=(
            ("id", "string"),
            ("kind", "string"),
            ("state", "string"),
            ("staged_at", "timestamp"),
            ("decided_at", "timestamp"),
            ("reason", "string"),
            ("gate", "string"),
            ("outcome", "string"),
            ("base_snapshot", "bigint"),
            ("snapshot", "bigint"),
            ("application", "string"),
            ("version", "bigint"),
            ("approved_by", "string"),
            ("summary", "string"),
            ("properties", "string"),
        ),
        rows=lambda runtime, table, _: inspect.list_commits(runtime, table, list(CommitState), _MOST_COMMITS),
    ),
}
