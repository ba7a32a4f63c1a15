"""Pure. Which predicates may have no answer for a row: those are asked of the rows alone that all else leaves."""

from lakelib.model.predicate import Computed, Fixed, Function, Predicate, computed_in
from lakelib.rows.values import INTEGER_BITS, decimal_parts

_OVERFLOWING = (Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.NEGATE, Function.ABS)
"""Of whole numbers: the result may have no room."""
_FLOATS = ("float", "double")
_ALWAYS_FIT = {("timestamp", "date"), ("timestamp", "timestamp_ntz"), ("timestamp_ntz", "timestamp")} | {
    ("timestamp_ntz", "date"),
    ("boolean", "string"),
}
_MOST_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def may_fail(predicate: Predicate) -> bool:
    """Whether there may be rows for which it is an error to ask."""
    return any(map(_may_fail, computed_in(predicate)))


def _may_fail(computed: Computed) -> bool:
    match computed.function:
        case Function.DIVIDE | Function.REMAINDER:
            divisor = computed.arguments[1]
            return not isinstance(divisor, Fixed) or not divisor.value or decimal_parts(computed.type) is not None
        case Function.LATER | Function.MONTHS_LATER:
            return True
        case Function.CAST:
            return not _fits(computed.arguments[0].type, computed.type)
    return computed.function in _OVERFLOWING and computed.type in INTEGER_BITS


def _fits(given: str, wanted: str) -> bool:
    """Whether each value of the one type is one of the other, if perhaps not with all its digits."""
    if given == wanted or (given, wanted) in _ALWAYS_FIT:
        return True
    if given == "boolean":
        return wanted in INTEGER_BITS
    if given in INTEGER_BITS:
        if wanted in INTEGER_BITS:
            return INTEGER_BITS[given] <= INTEGER_BITS[wanted]
        room = decimal_parts(wanted)
        return wanted in (*_FLOATS, "string") or (room is not None and _MOST_DIGITS[given] <= room[0] - room[1])
    own, room = decimal_parts(given), decimal_parts(wanted)
    if own is not None and room is not None:
        return own[1] <= room[1] and own[0] - own[1] <= room[0] - room[1]
    return wanted in _FLOATS and (own is not None or given in _FLOATS)
