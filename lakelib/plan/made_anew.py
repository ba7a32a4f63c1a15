"""Pure. Which partitions of a table are made anew: told by the values that the rows which they come from have in the
column of the same name.

A mark stands for a partition: its key, another text of a column that holds texts, or None for NULL.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import And, Compare, Comparison, IsNull, Predicate, Raw
from lakelib.model.schema import Column
from lakelib.plan.literals import any_of
from lakelib.rows.values import raw_value
from lakelib.specs.partition_keys import Step, column_value, format_partition, parse_partition, step_after

Mark = str | None
_MOMENTS = ("timestamp", "timestamp_ntz")


def check_column(column: Column | None, name: str, table: str, every: Step) -> Column:
    """The column. Raises InvalidInputError where it cannot tell which partition a row belongs to."""
    kinds = ("string", *_MOMENTS) if every == "hour" else ("string", "date", *_MOMENTS)
    if column is not None and column.type in kinds:
        return column
    found = "no such column" if column is None else f"{column.name!r} of type {column.type.upper()}"
    raise InvalidInputError(
        f"Changes of {table} do not tell which {every} of {name!r} they belong to: it has {found}.",
        kind="no_partition_column",
        remedy=f"Read a table with a column {name!r} of type {' or '.join(kind.upper() for kind in kinds)}, or leave"
        " partition.from_changes out.",
    )


def mark_of(every: Step, value: Any) -> Mark:
    """The mark of the rows that have such a value."""
    match value:
        case datetime() if value.tzinfo is not None:
            return format_partition(every, value.astimezone(UTC).replace(tzinfo=None))
        case date():
            return format_partition(every, value)
        case str() | None:
            return value
    raise AssertionError(value)


def value_of(every: Step, mark: Mark, column_type: str) -> str | None:
    """What the table's own rows have in the column, as text. Raises InvalidInputError for a text that is no key, where
    it takes one."""
    return mark if mark is None or column_type == "string" else column_value(every, mark, column_type)


def rows_with(every: Step, marks: Sequence[Mark], column: Column) -> Predicate:
    """The rows of these marks. Raises InvalidInputError as `value_of` does."""
    parts: list[Predicate] = [IsNull(column=column)] if None in marks else []
    said = [mark for mark in marks if mark is not None]
    if column.type == "string":
        parts += [Compare(column=column, op=Comparison.EQ, value=mark) for mark in said]
    else:
        parts += [_between(column, *bounds) for bounds in _joined(every, said)]
    return any_of(parts)


def _joined(every: Step, keys: Iterable[str]) -> list[tuple[datetime, datetime]]:
    """The beginnings and ends of the steps, neighbours in one."""
    found: list[tuple[datetime, datetime]] = []
    begins = [parse_partition(every, key) for key in keys]
    for begin in sorted(begin for begin in begins if begin is not None):
        end = step_after(every, begin)
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def _between(column: Column, begin: datetime, end: datetime) -> Predicate:
    low = Compare(column=column, op=Comparison.GE, value=_raw(column, begin))
    return And(parts=(low, Compare(column=column, op=Comparison.LT, value=_raw(column, end))))


def _raw(column: Column, moment: datetime) -> Raw:
    match column.type:
        case "date":
            return raw_value(column.type, moment.date())
        case "timestamp":
            return raw_value(column.type, moment.replace(tzinfo=UTC))
    return raw_value(column.type, moment)
