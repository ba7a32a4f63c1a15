"""Interop. Actions in the columns of a checkpoint's Parquet file, and back."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelib.errors import CorruptionError
from lakelib.interop.delta.actions import (
    ACTION_NAMES,
    Action,
    Add,
    CheckpointMetadata,
    DomainMetadata,
    Malformed,
    Metadata,
    Protocol,
    Remove,
    Sidecar,
    Txn,
    from_object,
    to_object,
)

_TEXTS = pa.map_(pa.string(), pa.string())
_LIST = pa.list_(pa.field("element", pa.string()))
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_TYPES: dict[type, pa.StructType] = {
    Txn: pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    Add: pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", _TEXTS),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
            ("tags", _TEXTS),
            ("deletionVector", _VECTOR),
        ]
    ),
    Remove: pa.struct(
        [
            ("path", pa.string()),
            ("deletionTimestamp", pa.int64()),
            ("dataChange", pa.bool_()),
            ("extendedFileMetadata", pa.bool_()),
            ("partitionValues", _TEXTS),
            ("size", pa.int64()),
            ("deletionVector", _VECTOR),
        ]
    ),
    Metadata: pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", _LIST),
            ("createdTime", pa.int64()),
            ("configuration", _TEXTS),
        ]
    ),
    Protocol: pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", _LIST),
            ("writerFeatures", _LIST),
        ]
    ),
}
_SCHEMA = pa.schema([(ACTION_NAMES[made], type_) for made, type_ in _TYPES.items()])
_MAPS = frozenset(("partitionValues", "tags", "configuration"))
_TOLD = (*_TYPES, DomainMetadata, CheckpointMetadata, Sidecar)


def to_tables(actions: Sequence[Action], part_actions: int) -> list[pa.Table]:
    """The actions of a state, dealt out to parts of at most so many."""
    parts = [actions[start : start + part_actions] for start in range(0, len(actions), part_actions)] or [()]
    return [pa.Table.from_pylist([_row(each) for each in part], schema=_SCHEMA) for part in parts]


def from_table(table: pa.Table, where: str) -> list[Action]:
    """What a checkpoint says, those of other writers too. Raises CorruptionError for what is no action."""
    names = [ACTION_NAMES[made] for made in _TOLD if ACTION_NAMES[made] in table.column_names]
    found: list[Action] = []
    try:
        for row in table.select(names).to_pylist(maps_as_pydicts="strict"):
            found += [from_object({name: _told(body)}) for name, body in row.items() if body is not None]
    except (Malformed, ValueError) as error:
        raise CorruptionError(
            f"{where} is not a checkpoint of a Delta log: {error}.",
            kind="unreadable_delta_log",
            remedy="Restore the file, or move the folder _delta_log away and export the table again.",
        ) from error
    return found


def _row(action: Action) -> dict[str, Any]:
    ((name, body),) = to_object(action).items()
    return {name: {key: _pairs(key, value) for key, value in body.items()}}


def _pairs(key: str, value: Any) -> Any:
    """Arrow takes a map as pairs."""
    if key in _MAPS:
        return list(value.items())
    return {**value, "options": list(value["options"].items())} if key == "format" else value


def _told(body: dict[str, Any]) -> dict[str, Any]:
    """Without what the schema of the file has, and the action has not."""
    return {key: value for key, value in body.items() if value is not None and not key.endswith("_parsed")}
