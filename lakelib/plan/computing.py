"""Pure. What is computed of typed values, of which type it is, and its value where nothing but values goes in."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import Computed, Fixed, Function, Tested
from lakelib.plan.literals import Value
from lakelib.rows.cast import can_cast
from lakelib.rows.compute import values_of
from lakelib.rows.types import arrow_type
from lakelib.rows.values import INTEGER_BITS, decimal_parts, python_value, raw_value, raw_values

Operand = Tested | Fixed

VOID = "void"
"""The type of NULL."""
_FLOATS = ("float", "double")
_MOMENTS = ("timestamp", "timestamp_ntz")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Of the decimals that Spark takes whole numbers for."""
_MOST_DIGITS = 38
_LEAST_PLACES = 6
"""Behind the point, of a quotient."""


class NotComputableError(Exception):
    """What is asked of these types is not known; says why."""


def compute(function: Function, arguments: Sequence[Operand], kind: str) -> Operand:
    """Raises InvalidInputError where it is computed of values alone, and cannot be."""
    if function is not Function.COALESCE and any(_is_null(each) for each in arguments):
        return Fixed(type=VOID, value=None)
    computed = Computed(function=function, arguments=tuple(arguments), type=kind)
    if not all(isinstance(each, Fixed) for each in arguments):
        return computed
    found = values_of(computed, pa.table({"row": pa.nulls(1)}))
    if found.failed is not None and found.failed[0].as_py():
        raise InvalidInputError(
            f"The predicate has a value that cannot be computed: {found.reason}.",
            kind="invalid_predicate",
            remedy="Write TRY_CAST, or cast to a type with more room.",
        )
    array = found.array if isinstance(found.array, pa.Array) else found.array.combine_chunks()
    return Fixed(type=kind, value=raw_values(array)[0])


def _is_null(operand: Operand) -> bool:
    return isinstance(operand, Fixed) and operand.value is None


def cast_to(operand: Operand, kind: str, *, is_tried: bool = False) -> Operand:
    """Raises NotComputableError."""
    if operand.type == kind:
        return operand
    if _is_null(operand):
        return Fixed(type=kind, value=None)
    if not can_cast(arrow_type(operand.type), arrow_type(kind)):
        raise NotComputableError(f"{operand.type} is not cast to {kind}")
    return compute(Function.TRY_CAST if is_tried else Function.CAST, (operand,), kind)


def cast_tested(tested: Tested, kind: str) -> Tested:
    """Raises NotComputableError."""
    found = cast_to(tested, kind)
    assert not isinstance(found, Fixed), "a column is no value"
    return found


def lowered(text: Tested) -> Computed:
    return Computed(function=Function.LOWER, arguments=(text,), type="string")


# Arithmetic


def arithmetic(function: Function, left: Operand, right: Operand) -> Operand:
    """Raises NotComputableError."""
    if VOID in (left.type, right.type):
        return Fixed(type=VOID, value=None)
    kinds = (left.type, right.type)
    parts = [_as_decimal(each) for each in (left, right)]
    if any(decimal_parts(kind) for kind in kinds) and None not in parts:
        return _of_decimals(function, left, right)
    if not all(_is_number(kind) for kind in kinds):
        raise NotComputableError(f"{kinds[0]} {function.value} {kinds[1]}")
    wanted = "double" if function is Function.DIVIDE else _wider(*kinds)
    return compute(function, (cast_to(left, wanted), cast_to(right, wanted)), wanted)


def _of_decimals(function: Function, left: Operand, right: Operand) -> Operand:
    (p, s), (q, t) = (_required(each) for each in (left, right))
    match function:
        case Function.ADD | Function.SUBTRACT:
            scale = max(s, t)
            digits = max(p - s, q - t) + 1 + scale
        case Function.MULTIPLY:
            scale, digits = s + t, p + q + 1
        case Function.DIVIDE:  # of more digits than there are Spark gives up places behind the point
            scale = max(_LEAST_PLACES, s + q + 1)
            whole = p - s + t
            if whole + scale > _MOST_DIGITS:
                scale = max(_MOST_DIGITS - whole, _LEAST_PLACES)
            digits = min(whole + scale, _MOST_DIGITS)
        case _:
            raise NotComputableError(f"{function.value} of decimals")
    if digits > _MOST_DIGITS:
        raise NotComputableError(f"a decimal of {digits} digits")
    arguments = (cast_to(left, f"decimal({p},{s})"), cast_to(right, f"decimal({q},{t})"))
    return compute(function, arguments, f"decimal({digits},{scale})")


def _required(operand: Operand) -> tuple[int, int]:
    parts = _as_decimal(operand)
    if parts is None:
        raise NotComputableError(operand.type)
    return parts


def _as_decimal(operand: Operand) -> tuple[int, int] | None:
    """Precision and scale of a decimal, or of the one that a whole number is taken for: one that stands in the text has
    just its digits."""
    parts = decimal_parts(operand.type)
    if parts is not None or operand.type not in INTEGER_BITS:
        return parts
    if isinstance(operand, Fixed) and operand.value is not None:
        return len(str(abs(int(operand.value)))), 0
    return _DIGITS[operand.type], 0


def _is_number(kind: str) -> bool:
    return kind in INTEGER_BITS or kind in _FLOATS or decimal_parts(kind) is not None


def _wider(left: str, right: str) -> str:
    """The type of both numbers in ANSI mode."""
    kinds = {left, right}
    if len(kinds) == 1:
        return left
    if kinds <= {*INTEGER_BITS}:
        return max(kinds, key=INTEGER_BITS.__getitem__)
    return "double"


def of_number(function: Function, operand: Operand) -> Operand:
    """What has the type of its one argument, a number. Raises NotComputableError."""
    if not (_is_number(operand.type) or operand.type == VOID):
        raise NotComputableError(f"{function.value} of {operand.type}")
    return compute(function, (operand,), operand.type)


# What is compared or chosen


def common_type(operands: Sequence[Operand]) -> str:
    """The type that all are brought to, without losing a digit of a decimal. Raises NotComputableError."""
    kinds = list(dict.fromkeys(each.type for each in operands if each.type != VOID))
    if len(kinds) < 2:
        return kinds[0] if kinds else VOID
    parts = [_as_decimal(each) for each in operands if each.type != VOID]
    if all(kind in INTEGER_BITS for kind in kinds):
        return max(kinds, key=INTEGER_BITS.__getitem__)
    known = [each for each in parts if each is not None]
    if len(known) == len(parts):
        scale = max(each[1] for each in known)
        digits = max(each[0] - each[1] for each in known) + scale
        if digits <= _MOST_DIGITS:
            return f"decimal({digits},{scale})"
    elif all(_is_number(kind) for kind in kinds):
        return "double"
    elif set(kinds) <= {"date", *_MOMENTS}:
        return "timestamp" if "timestamp" in kinds else "timestamp_ntz"
    raise NotComputableError(" and ".join(kinds))


def are_alike(left: str, right: str) -> bool:
    """Whether values of the types are encoded alike, so that bounds of the one tell of the other."""
    for kinds in (set(INTEGER_BITS), set(_FLOATS)):
        if left in kinds and right in kinds:
            return True
    own, other = decimal_parts(left), decimal_parts(right)
    return left == right or (own is not None and other is not None and own[1] == other[1])


# Values with a type, and without one


def fixed(value: Value | None, kind: str) -> Fixed:
    """The value of a type that holds it."""
    if value is None:
        return Fixed(type=VOID, value=None)
    given = int(value) if isinstance(value, Decimal) and kind in INTEGER_BITS else value
    return Fixed(type=kind, value=raw_value(kind, given))


def value_of(operand: Fixed) -> Value | None:
    """The value, to be compared with anything that it may be compared with. Raises NotComputableError for a moment
    that Python does not know."""
    if operand.value is None:
        return None
    value = python_value(operand.type, operand.value)
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, str) and operand.type != "string":
        raise NotComputableError(f"the {operand.type} {value}")
    found: Value = value
    return found


def type_of_number(text: str) -> str:
    """The type of a number as it is written."""
    if "e" in text.lower():
        return "double"
    if "." in text:
        whole, places = text.split(".")
        return f"decimal({max(len(whole.lstrip('0')) + len(places), 1)},{len(places)})"
    number = int(text)
    for kind in ("int", "bigint"):
        if -(1 << INTEGER_BITS[kind] - 1) <= number < 1 << INTEGER_BITS[kind] - 1:
            return kind
    return f"decimal({len(str(abs(number)))},0)"


def order_of(left: Value, right: Value) -> int | None:
    """-1, 0 or 1, as the one value is below, like or above the other; None where the two are not compared."""
    low: Any
    high: Any
    if isinstance(left, Decimal | float) and isinstance(right, Decimal | float):
        low, high = (_rank(each) for each in (left, right))
    elif isinstance(left, date) and isinstance(right, date):
        low, high = (_moment(each) for each in (left, right))
    elif type(left) is type(right) and isinstance(left, str | bytes | bool):
        low, high = (each.encode() if isinstance(each, str) else each for each in (left, right))
    else:
        return None
    return int(low > high) - int(low < high)


def _rank(number: Decimal | float) -> tuple[int, Decimal | float]:
    is_nan = number != number
    return int(is_nan), 0.0 if is_nan else number


def _moment(day: date) -> datetime:
    if not isinstance(day, datetime):
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    return day.replace(tzinfo=UTC) if day.tzinfo is None else day
