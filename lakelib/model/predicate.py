"""Frozen values: a predicate bound to a table's columns. SQL's three-valued logic throughout.

Literals are raw values (see `model.sortable`) of the column's own type: an int for integers, dates (days), timestamps
(microseconds) and decimals (unscaled); bool, float, str, bytes. NaN equals itself and is greater than every number.
"""

from collections.abc import Iterator
from enum import Enum

from lakelib.dataclass import dataclass
from lakelib.model.schema import Column

Raw = bool | int | float | str | bytes


class Function(Enum):
    """What is computed of values. Each means what it means in Spark's ANSI mode, in UTC, and is NULL where one of its
    arguments is, but for COALESCE."""

    FIELD = "field"
    """Of a struct. The second argument is its name."""
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    NEGATE = "negate"
    ABS = "abs"
    CAST = "cast"
    TRY_CAST = "try_cast"
    """NULL for what CAST refuses."""
    COALESCE = "coalesce"
    LOWER = "lower"
    UPPER = "upper"
    LENGTH = "length"
    """In characters, of a text."""
    TRIM = "trim"
    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    DAY = "day"
    DAY_OF_YEAR = "dayofyear"
    DAY_OF_WEEK = "dayofweek"
    """From Sunday, which is 1."""
    WEEK_DAY = "weekday"
    """From Monday, which is 0."""
    WEEK = "weekofyear"
    HOUR = "hour"
    MINUTE = "minute"
    SECOND = "second"
    LATER = "later"
    """A day so many days later, a moment so many microseconds."""
    MONTHS_LATER = "add_months"
    """On the last day of a month that is too short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A value that stands in a predicate; None is NULL."""

    type: str
    value: Raw | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """What is computed of a row: tested like a column, and known by no bounds. Its arguments have the types that the
    function takes; where they have to be cast, that is said."""

    function: Function
    arguments: "tuple[Column | Computed | Fixed, ...]"
    type: str

    @property
    def nullable(self) -> bool:
        return True


Tested = Column | Computed
"""What a predicate tests: a column, or what is computed of some."""


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
MIRRORED = {
    Comparison.EQ: Comparison.EQ,
    Comparison.NE: Comparison.NE,
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
}
"""The comparison that says the same with its sides exchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """TRUE, FALSE or, as None, NULL for every row."""

    value: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    column: Tested
    op: Comparison
    value: Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareColumns:
    """Both columns have types of which values are encoded alike: the same one, whole numbers of any width, floats and
    doubles, decimals of one scale. Where one is computed the other may be a value."""

    left: Tested
    op: Comparison
    right: Tested


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """Membership in a set without NULL: NULL for a NULL column, else TRUE or FALSE."""

    column: Tested
    values: tuple[Raw, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    column: Tested


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """SQL LIKE on a string column; % and _ are wild, backslash escapes."""

    column: Tested
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """SQL RLIKE on a string column: a regular expression, as `rows.regex` takes it, is found somewhere."""

    column: Tested
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


Predicate = Constant | Compare | CompareColumns | In | IsNull | Like | Matches | And | Or | Not


def columns_of(predicate: Predicate) -> frozenset[int]:
    """The ids of the columns that a predicate looks at."""
    return frozenset(
        each.id for tested in _tested(predicate) for each in _looked_at(tested) if isinstance(each, Column)
    )


def computed_in(predicate: Predicate) -> Iterator[Computed]:
    """All that the predicate has computed."""
    for tested in _tested(predicate):
        yield from (each for each in _looked_at(tested) if isinstance(each, Computed))


def _tested(predicate: Predicate) -> Iterator[Tested]:
    match predicate:
        case Constant():
            return
        case CompareColumns(left=left, right=right):
            yield from (left, right)
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from _tested(part)
        case Not(part=part):
            yield from _tested(part)
        case _:
            yield predicate.column


def _looked_at(tested: Column | Computed | Fixed) -> Iterator[Column | Computed]:
    """It, and all that it is computed of."""
    if isinstance(tested, Fixed):
        return
    yield tested
    if isinstance(tested, Computed):
        for argument in tested.arguments:
            yield from _looked_at(argument)


def conjuncts_of(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """The predicates that must all be TRUE for the whole to be TRUE."""
    match predicate:
        case None:
            return ()
        case And(parts=parts):
            return tuple(conjunct for part in parts for conjunct in conjuncts_of(part))
        case _:
            return (predicate,)
