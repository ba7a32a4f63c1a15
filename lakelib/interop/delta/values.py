"""Interop. Partition values, statistics, paths and masks in the form that Delta has for them: exact or not at all.
Masks are deletion vectors: files are named where they are, small ones stand in the log."""

import json
import math
from collections.abc import Collection, Sequence
from typing import TypeVar
from urllib.parse import quote
from uuid import UUID

import numpy as np

from lakelib.interop.delta.actions import DeletionVector
from lakelib.interop.delta.schema import Naming
from lakelib.model.files import FOLDER, ColumnBounds, Mask, PartitionKey
from lakelib.model.schema import Column, TableSchema
from lakelib.model.sortable import decode
from lakelib.storage.paths import NULL_VALUE, value_text

_T = TypeVar("_T")

_PLAIN = frozenset(("boolean", "tinyint", "smallint", "int", "bigint", "date", "string"))
"""Types whose values all readers read alike as those of a partition."""
_DIGITS = np.frombuffer(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#", np.uint8
)
_POWERS = np.array([85**4, 85**3, 85**2, 85, 1], np.uint32)
_OFFSET = 1
"""Of the one vector in its file: behind the version of the format."""


_INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint"))
_CUT_BYTES = 64
"""Bounds of text and bytes are cut to so many: what is as long may be a part."""
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999: what others read of a date or a timestamp."""
_DAY_MICROS = 86_400_000_000
_CUT_PATH = "~"


def can_be_partitioned(columns: Sequence[Column]) -> bool:
    """Whether the partitions of a table may be partitions in Delta."""
    return bool(columns) and all(column.type in _PLAIN for column in columns)


def is_plain(columns: Sequence[Column], key: PartitionKey, path: str) -> bool:
    """Whether all readers see the partition's values as they are. Delta takes '' for NULL; some readers take the value
    from the folder's name."""
    if _CUT_PATH in path:
        return False
    for column, encoded in zip(columns, key, strict=True):
        if encoded is None:
            continue
        raw = decode(column.type, encoded)
        if column.type == "string" and raw in ("", NULL_VALUE):
            return False
        if column.type == "date" and not _FIRST_DAY <= int(raw) <= _LAST_DAY:
            return False
    return True


def partition_values(columns: Sequence[Column], key: PartitionKey, naming: Naming) -> dict[str, str | None]:
    """The values of a plain partition."""
    return {
        naming.of(column): None if encoded is None else value_text(column.type, encoded)
        for column, encoded in zip(columns, key, strict=True)
    }


def log_path(path: str) -> str:
    """A file's path as a URI relative to the table."""
    return quote(path, safe="/=-_.~")


def statistics(
    row_count: int,
    bounds: ColumnBounds,
    columns: Sequence[Column],
    stored: TableSchema,
    naming: Naming,
    *,
    left_out: Collection[int],
    is_masked: bool,
) -> str:
    """What is known of a file, as JSON: how many rows it has, and what columns have that are not `left_out`."""
    least: list[str] = []
    most: list[str] = []
    nulls: list[str] = []
    for column in columns:
        own = stored.by_id(column.id)
        if own is None or column.id in left_out:
            continue
        name = _text(naming.of(column))
        for found, encoded in ((least, _at(bounds.lower, column.id)), (most, _at(bounds.upper, column.id))):
            text = None if encoded is None else bound_text(own.type, encoded)
            if text is not None:
                found.append(f"{name}:{text}")
        null_count = _at(bounds.null_counts, column.id)
        if null_count is not None:
            nulls.append(f"{name}:{null_count}")
    parts = [f'"numRecords":{row_count}']
    if is_masked:
        parts.append('"tightBounds":false')
    for title, found in (("minValues", least), ("maxValues", most), ("nullCount", nulls)):
        parts.append(f'"{title}":{{{",".join(found)}}}')
    return f"{{{','.join(parts)}}}"


def bound_text(type_text: str, encoded: bytes) -> str | None:
    """A bound as JSON; None where that would not be exact."""
    if type_text in ("binary", "boolean") or len(encoded) >= _CUT_BYTES:
        return None
    raw = decode(type_text, encoded)
    if type_text == "string":
        return _text(str(raw))
    if type_text in ("float", "double"):
        return repr(float(raw)) if math.isfinite(float(raw)) else None
    if type_text in _INTEGERS or type_text.startswith("decimal("):
        return value_text(type_text, encoded)
    day = int(raw) if type_text == "date" else int(raw) // _DAY_MICROS
    return _text(value_text(type_text, encoded)) if _FIRST_DAY <= day <= _LAST_DAY else None


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _at(values: Sequence[_T | None], column_id: int) -> _T | None:
    return values[column_id - 1] if column_id <= len(values) else None


# Vectors


def vector_of(mask: Mask) -> DeletionVector:
    """What `add` and `remove` say of the mask."""
    if mask.path is None:
        assert mask.inline is not None
        return inline_vector(mask.inline, mask.cardinality)
    name = UUID(mask.path.removeprefix(f"{FOLDER}/deletion_vector_").removesuffix(".bin"))
    return DeletionVector(
        storage_type="u",
        path_or_inline_dv=FOLDER + z85(name.bytes),
        offset=_OFFSET,
        size_in_bytes=mask.size_bytes,
        cardinality=mask.cardinality,
    )


def inline_vector(vector: bytes, cardinality: int) -> DeletionVector:
    """A vector that stands in the log itself."""
    return DeletionVector(
        storage_type="i", path_or_inline_dv=z85(vector), size_in_bytes=len(vector), cardinality=cardinality
    )


def z85(content: bytes) -> str:
    """Bytes as text in ZeroMQ's base 85, filled up with zeros to a multiple of four."""
    words = np.frombuffer(content + bytes(-len(content) % 4), ">u4").astype(np.uint32)
    text: bytes = _DIGITS[(words[:, None] // _POWERS) % 85].tobytes()
    return text.decode("ascii")
