"""Interop. A table's columns as Delta has them: Spark's JSON of a schema, physical names, what a reader has to know."""

import json
from collections.abc import Mapping, Sequence
from itertools import count, pairwise
from typing import Any

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.types import arrow_type

_PRIMITIVE = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}
FIRST_NESTED_ID = 1_000_001
"""Nested fields have ids of their own in Delta, and none in our files: columns are found by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How columns are called inside the files. `physical` is None where that is their name."""

    physical: Mapping[int, str] | None

    def of(self, column: Column) -> str:
        return column.name if self.physical is None else self.physical[column.id]

    def differs(self, schema: TableSchema) -> bool:
        """Whether a column has another name inside. DuckDB loses the values of partitions then, and says nothing:
        they have to be read from the files."""
        return any(self.of(column) != column.name for column in schema.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """Files of one snapshot call a column by several names: Delta has one for all of them."""

    column: str


def find_naming(now: TableSchema, stored: Sequence[TableSchema], before: Mapping[int, str] | None) -> Naming | Mixed:
    """How the columns of a snapshot are called in its files, whose versions of the schema are given. Where they have
    had other names than their own `before`, these stay as long as they are right."""
    physical: dict[int, str] = {}
    inside = [each.in_files for each in stored]
    for column in now.columns:
        names = {found.name for each in inside if (found := each.by_id(column.id)) is not None}
        if len(names) > 1:
            return Mixed(column=column.name)
        kept = None if before is None else before.get(column.id)
        physical[column.id] = names.pop() if names else _free_name(column, kept, inside)
    for column in now.columns:
        name = physical[column.id]
        if any(_means_another(each, name, column.id) for each in inside):
            return Mixed(column=column.name)
    if before is None and all(physical[column.id] == column.name for column in now.columns):
        return Naming(physical=None)
    return Naming(physical=physical)


def _free_name(column: Column, kept: str | None, stored: Sequence[TableSchema]) -> str:
    """For a column that no file has: a name that is no other's in any of them."""
    for name in (column.in_file.name, kept, f"{column.name}-{column.id}"):
        if name is not None and not any(_means_another(each, name, column.id) for each in stored):
            return name
    return f"column-{column.id}"


def _means_another(schema: TableSchema, name: str, column_id: int) -> bool:
    found = schema.find(name)
    return found is not None and found.id != column_id


def find_type_changes(now: TableSchema, stored: Sequence[TableSchema]) -> dict[int, tuple[str, ...]]:
    """The narrower types of columns that files still have, the oldest first."""
    changes: dict[int, tuple[str, ...]] = {}
    for column in now.columns:
        found = dict.fromkeys(
            old.type
            for each in sorted(stored, key=lambda one: one.id)
            if (old := each.by_id(column.id)) is not None and _leaves(old.type) != _leaves(column.type)
        )
        narrower = tuple(each for each in found if _is_narrower(each, column.type))
        if narrower:
            changes[column.id] = narrower
    return changes


def _is_narrower(old: str, new: str) -> bool:
    """Whether values are of another type: new fields of a struct are none."""
    return not _leaves(new).items() >= _leaves(old).items()


def _leaves(type_text: str) -> dict[str, str]:
    """The types of a column's leaves by their path."""
    found: dict[str, str] = {}

    def visit(path: str, given: pa.DataType) -> None:
        for name, child in _children(given):
            visit(f"{path}.{name}", child)
        if not _children(given):
            found[path] = str(given)

    visit("", arrow_type(type_text))
    return found


def _children(given: pa.DataType) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(given):
        return [(field.name, field.type) for field in given]
    if pa.types.is_list(given):
        return [("element", given.value_type)]
    if pa.types.is_map(given):
        return [("key", given.key_type), ("value", given.item_type)]
    return []


def has_type(columns: Sequence[Column], type_text: str) -> bool:
    """Whether a column has values of the type, nested or not."""
    wanted = str(arrow_type(type_text))
    return any(wanted in _leaves(column.type).values() for column in columns)


def schema_string(columns: Sequence[Column], naming: Naming, changes: Mapping[int, Sequence[str]]) -> str:
    """The columns as `metaData` has them."""
    numbers = count(FIRST_NESTED_ID)
    is_mapped = naming.physical is not None

    def nested(name: str, given: pa.DataType) -> dict[str, Any]:
        metadata = _mapping(next(numbers), name) if is_mapped else {}
        return {"name": name, "type": typed(given), "nullable": True, "metadata": metadata}

    def typed(given: pa.DataType) -> Any:
        if pa.types.is_struct(given):
            return {"type": "struct", "fields": [nested(field.name, field.type) for field in given]}
        if pa.types.is_list(given):
            return {"type": "array", "elementType": typed(given.value_type), "containsNull": True}
        if pa.types.is_map(given):
            key, value = typed(given.key_type), typed(given.item_type)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        return _primitive(given)

    def field(column: Column) -> dict[str, Any]:
        metadata = _mapping(column.id, naming.of(column)) if is_mapped else {}
        if column.comment:
            metadata["comment"] = column.comment
        if column.id in changes:
            metadata["delta.typeChanges"] = _type_changes(column.type, changes[column.id])
        return {
            "name": column.name,
            "type": typed(arrow_type(column.type)),
            "nullable": column.nullable,
            "metadata": metadata,
        }

    return json.dumps(
        {"type": "struct", "fields": [field(column) for column in columns]}, ensure_ascii=False, separators=(",", ":")
    )


def _mapping(number: int, name: str) -> dict[str, Any]:
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}


def _type_changes(now: str, before: Sequence[str]) -> list[dict[str, str]]:
    """What has become of each leaf, step by step."""
    steps = [_leaves(each) for each in (*before, now)]
    found = []
    for old, new in pairwise(steps):
        for path, type_ in old.items():
            if path in new and new[path] != type_:
                change = {"fromType": _primitive_text(type_), "toType": _primitive_text(new[path])}
                if path:
                    change["fieldPath"] = path.removeprefix(".")
                found.append(change)
    return found


def _primitive_text(arrow_text: str) -> str:
    for arrow, name in _PRIMITIVE.items():
        if str(arrow) == arrow_text:
            return name
    return arrow_text.replace("decimal128", "decimal").replace(" ", "")


def _primitive(given: pa.DataType) -> str:
    known = _PRIMITIVE.get(given)
    return f"decimal({given.precision},{given.scale})" if known is None else known
