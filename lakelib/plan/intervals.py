"""Pure. Days and moments that lie an interval before or after another, as they stand in a text."""

import calendar
from datetime import date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from lakelib.model.predicate import Fixed, Function
from lakelib.plan.computing import VOID, NotComputableError, Operand, cast_to, compute, fixed, value_of

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_LENGTHS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}
_MOST_DIGITS = 9
_COUNTS = ("tinyint", "smallint", "int")


def shifted(operand: Operand, interval: exp.Interval, sign: int) -> Operand:
    """A day stays one but where hours, minutes or seconds are added. Raises NotComputableError for an interval of
    several units."""
    if operand.type == VOID:
        return Fixed(type=VOID, value=None)
    if operand.type not in ("date", "timestamp", "timestamp_ntz"):
        raise NotComputableError("an interval is added to a day or a moment")
    count, unit = _read(interval)
    if not isinstance(operand, Fixed):
        return _shifted_column(operand, sign * count, unit)
    moment = value_of(operand)
    if not isinstance(moment, date):
        raise NotComputableError(f"{operand.type} and an interval")
    kind = operand.type
    if kind == "date" and unit in ("hour", "minute", "second"):
        moment, kind = datetime(moment.year, moment.month, moment.day), "timestamp"
    try:
        if unit in _MONTHS:
            return fixed(_months_later(moment, sign * count * _MONTHS[unit]), kind)
        return fixed(moment + sign * count * _LENGTHS[unit], kind)
    except (OverflowError, ValueError):
        raise NotComputableError("it is beyond the years from 1 to 9999") from None


def _shifted_column(operand: Operand, count: int, unit: str) -> Operand:
    if operand.type == "date" and unit in ("hour", "minute", "second"):
        operand = cast_to(operand, "timestamp")
    if unit in _MONTHS:
        return compute(Function.MONTHS_LATER, (operand, _whole(count * _MONTHS[unit])), operand.type)
    smallest = timedelta(days=1) if operand.type == "date" else timedelta(microseconds=1)
    return compute(Function.LATER, (operand, _whole(count * (_LENGTHS[unit] // smallest))), operand.type)


def _whole(number: int) -> Fixed:
    return Fixed(type="bigint", value=number)


def days_later(operand: Operand, days: Operand) -> Operand:
    """Raises NotComputableError."""
    if VOID in (operand.type, days.type):
        return Fixed(type=VOID, value=None)
    if operand.type != "date" or days.type not in _COUNTS:
        raise NotComputableError("days are added to a day, as a whole number")
    if not isinstance(operand, Fixed) or not isinstance(days, Fixed):
        return compute(Function.LATER, (operand, days), "date")
    moment, count = value_of(operand), value_of(days)
    if not isinstance(moment, date) or not isinstance(count, Decimal) or count != int(count):
        raise NotComputableError("days are added as a whole number")
    try:
        return fixed(moment + timedelta(days=int(count)), "date")
    except OverflowError:
        raise NotComputableError("it is beyond the years from 1 to 9999") from None


def _read(interval: exp.Interval) -> tuple[int, str]:
    text, unit = interval.this, interval.args.get("unit")
    word = unit.name.lower().removesuffix("s") if isinstance(unit, exp.Var) else ""
    sign, digits = 1, text.name if isinstance(text, exp.Literal) else ""
    if isinstance(text, exp.Neg) and isinstance(text.this, exp.Literal):
        sign, digits = -1, text.this.name
    if digits[:1] in ("+", "-"):
        sign, digits = (-sign if digits[0] == "-" else sign), digits[1:]
    if word not in (*_MONTHS, *_LENGTHS) or not (digits.isascii() and digits.isdecimal()) or len(digits) > _MOST_DIGITS:
        raise NotComputableError("an interval is of one unit, like INTERVAL 1 DAY")
    return sign * int(digits), word


def _months_later(moment: date, months: int) -> date:
    """On the last day of a month that is too short."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    return moment.replace(year=year, month=month + 1, day=min(moment.day, calendar.monthrange(year, month + 1)[1]))
