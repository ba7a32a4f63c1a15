"""The database's records to frozen values and back. Nothing here talks to the database."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from functools import lru_cache
from typing import Any

from lakelib.model.commit import CommitInfo, CommitSummary
from lakelib.model.files import ColumnBounds, DataFile, NewFile, Partition
from lakelib.model.gate import RequiredSuite
from lakelib.model.merge import merge_from_text
from lakelib.model.options import stored_options
from lakelib.model.schema import Column, TableSchema
from lakelib.model.table import Attempt, Buckets, CommitKind, CommitState, KeysLooked, Snapshot, TableInfo, TableRef

Row = Mapping[str, Any]

_UNKNOWN_BOUNDS = ColumnBounds()
_MOST_SCHEMAS = 256


@lru_cache(maxsize=_MOST_SCHEMAS)
def schema_from_json(schema_id: int, columns: str) -> TableSchema:
    """The same text gives the same value: what was worked out for a schema is found by it again."""
    return TableSchema(id=schema_id, columns=tuple(Column(**column) for column in json.loads(columns)))


def columns_to_json(schema: TableSchema) -> str:
    return json.dumps(columns_to_list(schema))


def columns_to_list(schema: TableSchema) -> list[dict[str, Any]]:
    return [_column_to_json(column) for column in schema.columns]


def _column_to_json(column: Column) -> dict[str, Any]:
    """What most columns do not have is left out."""
    facts = {"id": column.id, "name": column.name, "type": column.type, "nullable": column.nullable}
    rare = {
        "comment": column.comment,
        "scale_since": column.scale_since,
        "function": column.function,
        "stored_as": column.stored_as,
    }
    return facts | {name: value for name, value in rare.items() if value}


def table_from_row(row: Row) -> TableInfo:
    suite = _required_suite(row)
    options = stored_options(row["options"])
    return TableInfo(
        id=row["id"],
        namespace=row["namespace"],
        name=row["name"],
        location=row["location"],
        schema=schema_from_json(row["schema_id"], row["columns"]),
        primary_key_ids=tuple(row["primary_key"]),
        partition_ids=tuple(row["partition_by"]),
        sequence_ids=tuple(row["sequence_by"]),
        buckets=Buckets(mode=row["bucket_mode"], fixed_depth=row["bucket_depth"]),
        merge=merge_from_text(row["merge"]),
        options=options if suite is None else replace(options, required_gate=suite.name),
        head_id=row["head_id"],
        loaded_at=row["loaded_at"].astimezone(UTC),
        required_suite=suite,
        definition=row.get("definition"),
    )


def _required_suite(row: Row) -> RequiredSuite | None:
    if row["suite_hash"] is None:
        return None
    return RequiredSuite(name=row["suite_name"], version=row["suite_version"], hash=row["suite_hash"])


def snapshot_from_row(row: Row, *, replayed: bool = False) -> Snapshot:
    return Snapshot(
        id=row["id"],
        kind=row["kind"],
        committed_at=row["committed_at"].astimezone(UTC),
        schema_id=row["schema_id"],
        commit_id=row["commit_id"],
        summary=row["summary"],
        properties=row["properties"],
        replayed=replayed,
    )


def attempt_from_row(row: Row) -> Attempt:
    return Attempt(
        commit_id=row["id"],
        version=row["version"],
        state=CommitState(row["state"]),
        base_snapshot_id=row["base_snapshot_id"],
        snapshot_id=row["snapshot_id"],
        reason=row["reason"],
        summary=row["summary"],
        properties=row["properties"],
    )


def partition_from_row(row: Row) -> Partition:
    return Partition(id=row["id"], key=tuple(row["key"]), path=row["path"])


def file_from_row(row: Row) -> DataFile:
    """A row without the bounds columns gives a file of unknown bounds."""
    bounds = _UNKNOWN_BOUNDS
    if "lower_bounds" in row:
        bounds = ColumnBounds(
            lower=tuple(row["lower_bounds"]), upper=tuple(row["upper_bounds"]), null_counts=tuple(row["null_counts"])
        )
    return DataFile(
        id=row["id"],
        path=row["path"],
        partition_id=row["partition_id"],
        depth=row["depth"],
        prefix=row["prefix"],
        run=row["run"],
        level=row["level"],
        row_count=row["row_count"],
        delete_count=row["delete_count"],
        size_bytes=row["size_bytes"],
        schema_id=row["schema_id"],
        sequence=row["sequence"],
        added_snapshot=row["added_snapshot"],
        removed_snapshot=row["removed_snapshot"],
        bounds=bounds,
    )


def files_to_json(files: Sequence[NewFile]) -> dict[str, Any]:
    """The files, and their partitions once each, as the protocol's functions take them."""
    places = {key: place for place, key in enumerate(dict.fromkeys(file.partition_key for file in files))}
    paths = {file.partition_key: file.partition_path for file in files}
    partitions = [{"place": place, "key": _hexes(key), "path": paths[key]} for key, place in places.items()]
    return {"partitions": partitions, "files": [_file_to_json(file, places[file.partition_key]) for file in files]}


def _file_to_json(file: NewFile, partition: int) -> dict[str, Any]:
    return {
        "path": file.path,
        "partition": partition,
        "depth": file.depth,
        "prefix": file.prefix,
        "run": file.run,
        "level": file.level,
        "row_count": file.row_count,
        "delete_count": file.delete_count,
        "size_bytes": file.size_bytes,
        "sequence": file.sequence,
        "lower_bounds": _hexes(file.bounds.lower),
        "upper_bounds": _hexes(file.bounds.upper),
        "null_counts": list(file.bounds.null_counts),
    }


def _hexes(values: Sequence[bytes | None]) -> list[str | None]:
    """As PostgreSQL writes bytes."""
    return [None if value is None else "\\x" + value.hex() for value in values]


def summary_from_row(row: Row) -> CommitSummary:
    return CommitSummary(
        id=row["id"],
        table=row["table_name"],
        kind=row["kind"],
        state=row["state"],
        staged_at=row["staged_at"].astimezone(UTC),
        decided_at=None if row["decided_at"] is None else row["decided_at"].astimezone(UTC),
        reason=row["reason"],
        gate=row["gate"],
        outcome=row["outcome"],
        base_snapshot=row["base_snapshot_id"],
        head_snapshot=row["head_id"],
        snapshot=row["snapshot_id"],
        application=row["application"],
        version=row["version"],
        approved_by=row["approved_by"],
        approval_reason=row["approval_reason"],
        summary=row["summary"],
        properties=row["properties"],
    )


def _keys_looked(row: Row) -> KeysLooked | None:
    if row["keys_until"] is None:
        return None
    return KeysLooked(until=row["keys_until"], marks_run=row["marks_run"])


def commit_from_row(row: Row) -> CommitInfo:
    return CommitInfo(
        id=row["id"],
        table=TableRef(id=row["table_id"], full_name=row["table_name"]),
        kind=CommitKind(row["kind"]),
        state=CommitState(row["state"]),
        snapshot_id=row["snapshot_id"],
        reason=row["reason"],
        application=row["application"],
        version=row["version"],
        amendment=row["amendment"],
        schema_id=row["schema_id"],
        new_schema_id=None if row["schema_id"] == row["base_schema_id"] else row["schema_id"],
        keys=_keys_looked(row),
        summary=row["summary"],
        properties=row["properties"],
    )
