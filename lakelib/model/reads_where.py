"""Pure. What a predicate says of partitions, as plain JSON values: so the catalog remembers where a commit has read.

Columns are named by id, values are sortable encodings in hex. A test of any other column becomes "unknown".
"""

from collections.abc import Collection
from typing import Any

from lakelib.model import sortable
from lakelib.model.predicate import (
    And,
    Compare,
    CompareColumns,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    columns_of,
    computed_in,
)
from lakelib.model.schema import Column

_UNKNOWN = IsNull(column=Column(id=0, name="", type="boolean"))
"""May be TRUE and may be FALSE: nothing is known of its column."""


def reads_where_to_json(predicate: Predicate, partition_ids: Collection[int]) -> list[Any]:
    """What the predicate says of partitions."""
    match predicate:
        case And(parts=parts):
            return ["and", *(reads_where_to_json(part, partition_ids) for part in parts)]
        case Or(parts=parts):
            return ["or", *(reads_where_to_json(part, partition_ids) for part in parts)]
        case Not(part=part):
            return ["not", reads_where_to_json(part, partition_ids)]
        case Constant(value=truth):
            return ["constant", truth]
    if not columns_of(predicate) <= set(partition_ids) or next(computed_in(predicate), None) is not None:
        return ["unknown"]
    match predicate:
        case Compare(column=Column() as column, op=op, value=value):
            return ["compare", column.id, column.type, op.value, sortable.encode(column.type, value).hex()]
        case CompareColumns(left=Column() as left, op=op, right=Column() as right):
            return ["columns", left.id, op.value, right.id, left.type]
        case In(column=Column() as column, values=values):
            encoded = [sortable.encode(column.type, value).hex() for value in values]
            return ["in", column.id, column.type, encoded]
        case IsNull(column=Column() as column):
            return ["null", column.id, column.type]
        case Like(column=Column() as column, pattern=pattern):
            return ["like", column.id, pattern]
    return ["unknown"]


def reads_where_from_json(given: list[Any]) -> Predicate:
    """The way back, to be asked of partitions only."""
    match given:
        case ["and", *parts]:
            return And(parts=tuple(map(reads_where_from_json, parts)))
        case ["or", *parts]:
            return Or(parts=tuple(map(reads_where_from_json, parts)))
        case ["not", part]:
            return Not(part=reads_where_from_json(part))
        case ["constant", value]:
            return Constant(value=value)
        case ["unknown"]:
            return _UNKNOWN
        case ["compare", column_id, type_text, op, encoded]:
            value = sortable.decode(type_text, bytes.fromhex(encoded))
            return Compare(column=_column(column_id, type_text), op=Comparison(op), value=value)
        case ["columns", left, op, right, type_text]:
            return CompareColumns(left=_column(left, type_text), op=Comparison(op), right=_column(right, type_text))
        case ["in", column_id, type_text, encoded]:
            values = tuple(sortable.decode(type_text, bytes.fromhex(value)) for value in encoded)
            return In(column=_column(column_id, type_text), values=values)
        case ["null", column_id, type_text]:
            return IsNull(column=_column(column_id, type_text))
        case ["like", column_id, pattern]:
            return Like(column=_column(column_id, "string"), pattern=pattern)
    raise ValueError(f"{given} is no test of partitions")


def _column(column_id: int, type_text: str) -> Column:
    return Column(id=column_id, name="", type=type_text)
