"""Pure. Says of a column what is said of its year, its day, or of itself in a wider type: bounds tell of the column."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np

from lakelib.model.predicate import (
    And,
    Compare,
    Comparison,
    Computed,
    Function,
    In,
    Not,
    Or,
    Predicate,
    Raw,
    Tested,
)
from lakelib.plan.literals import any_of, compare_raw, compare_value
from lakelib.rows.calendar_parts import DAY_MICROSECONDS
from lakelib.rows.values import INTEGER_BITS

_MOST_VALUES = 100
"""Of a longer list of values each row is asked: so many ranges would take longer."""


def by_range(predicate: Predicate) -> Predicate:
    """The same predicate, TRUE, FALSE and NULL for the same rows."""
    match predicate:
        case And(parts=parts):
            return And(parts=tuple(map(by_range, parts)))
        case Or(parts=parts):
            return Or(parts=tuple(map(by_range, parts)))
        case Not(part=part):
            return Not(part=by_range(part))
        case Compare(column=Computed() as computed, op=op, value=raw):
            start = _starts(computed)
            if start is not None:
                return _within(computed.arguments[0], op, int(raw), start)
            return _unwidened(computed, op, raw) or predicate
        case In(column=Computed() as computed, values=raws) if len(raws) <= _MOST_VALUES:
            parts = tuple(by_range(Compare(column=computed, op=Comparison.EQ, value=raw)) for raw in raws)
            is_told = _starts(computed) is not None or _is_widened(computed)
            return any_of(parts) if is_told else predicate
    return predicate


_Start = Callable[[int], int]
"""The first raw value for which what is computed is as large as this."""


def _starts(computed: Computed) -> _Start | None:
    match computed:
        case Computed(function=Function.YEAR, arguments=(given,)):
            return _first_day if given.type == "date" else lambda year: _first_day(year) * DAY_MICROSECONDS
        case Computed(function=Function.CAST, type="date", arguments=(given,)) if given.type != "string":
            return lambda day: day * DAY_MICROSECONDS
    return None


def _first_day(year: int) -> int:
    return int(np.datetime64(year - 1970, "Y").astype("datetime64[D]").astype(np.int64))


def _within(column: object, op: Comparison, value: int, start: _Start) -> Predicate:
    assert isinstance(column, Tested), "of values alone all is known"
    first, past = start(value), start(value + 1)
    match op:
        case Comparison.EQ:
            return And(parts=(_from(column, first), _below(column, past)))
        case Comparison.NE:
            return Or(parts=(_below(column, first), _from(column, past)))
        case Comparison.LT:
            return _below(column, first)
        case Comparison.LE:
            return _below(column, past)
        case Comparison.GT:
            return _from(column, past)
        case Comparison.GE:
            return _from(column, first)


def _from(column: Tested, raw: int) -> Predicate:
    return by_range(compare_raw(column, Comparison.GE, raw))


def _below(column: Tested, raw: int) -> Predicate:
    return by_range(compare_raw(column, Comparison.LT, raw))


def _is_widened(computed: Computed) -> bool:
    given = computed.arguments[0].type
    if computed.function is not Function.CAST or given not in INTEGER_BITS:
        return False
    return INTEGER_BITS[given] <= INTEGER_BITS.get(computed.type, 0)


def _unwidened(computed: Computed, op: Comparison, raw: Raw) -> Predicate | None:
    """A whole number in a type with more room is the same number."""
    column = computed.arguments[0]
    if not _is_widened(computed) or not isinstance(column, Tested):
        return None
    return by_range(compare_value(column, op, Decimal(int(raw))))
