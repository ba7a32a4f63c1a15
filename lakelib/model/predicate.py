"""Frozen values: a predicate bound to a table's columns. SQL's three-valued logic throughout.

Literals are raw values (see `model.sortable`) of the column's own type: an int for integers, dates (days), timestamps
(microseconds) and decimals (unscaled); bool, float, str, bytes. NaN equals itself and is greater than every number.
"""

from dataclasses import dataclass
from enum import Enum

from lakelib.model.schema import Column

Raw = bool | int | float | str | bytes


class Comparison(Enum):
    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


OPPOSITE = {
    Comparison.EQ: Comparison.NE,
    Comparison.NE: Comparison.EQ,
    Comparison.LT: Comparison.GE,
    Comparison.GE: Comparison.LT,
    Comparison.GT: Comparison.LE,
    Comparison.LE: Comparison.GT,
}
"""The comparison that is TRUE where another is FALSE: there is a total order of all values but NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """TRUE, FALSE or, as None, NULL for every row."""

    value: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    column: Column
    op: Comparison
    value: Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareColumns:
    """Both columns have the same type."""

    left: Column
    op: Comparison
    right: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """Membership in a set without NULL: NULL for a NULL column, else TRUE or FALSE."""

    column: Column
    values: tuple[Raw, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """SQL LIKE on a string column; % and _ are wild, backslash escapes."""

    column: Column
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    part: "Predicate"


Predicate = Constant | Compare | CompareColumns | In | IsNull | Like | And | Or | Not


def columns_of(predicate: Predicate) -> frozenset[int]:
    """The ids of the columns that a predicate looks at."""
    match predicate:
        case Constant():
            return frozenset()
        case CompareColumns(left=left, right=right):
            return frozenset((left.id, right.id))
        case And(parts=parts) | Or(parts=parts):
            return frozenset().union(*(columns_of(part) for part in parts))
        case Not(part=part):
            return columns_of(part)
        case _:
            return frozenset((predicate.column.id,))


def conjuncts_of(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """The predicates that must all be TRUE for the whole to be TRUE."""
    match predicate:
        case None:
            return ()
        case And(parts=parts):
            return tuple(conjunct for part in parts for conjunct in conjuncts_of(part))
        case _:
            return (predicate,)
