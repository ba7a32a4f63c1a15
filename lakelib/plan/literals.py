"""Pure. Compares a column with a value as SQL means it, in values that the column can hold; and names partitions so."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal

from lakelib.errors import InvalidInputError
from lakelib.model import sortable
from lakelib.model.files import PartitionKey
from lakelib.model.predicate import And, Compare, Comparison, Constant, In, IsNull, Not, Or, Predicate, Raw, Tested
from lakelib.model.schema import Column
from lakelib.model.sortable import is_sortable
from lakelib.plan.describe import describe_tested
from lakelib.rows.values import INTEGER_BITS, decimal_parts, parse_number, parse_timestamp, raw_value

Value = bool | Decimal | float | str | bytes | date | datetime
"""A literal before it meets a column. A float is one that no Decimal holds (NaN, infinity) or a cast to double."""
_MOST_NAMED = 200


_EXACT = Context(prec=400)
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BELOW = (Comparison.LT, Comparison.LE)
_ABOVE = (Comparison.GT, Comparison.GE)


def compare_value(column: Tested, op: Comparison, value: Value | None) -> Predicate:
    """`column op value`, with a value that the column need not be able to hold: `int_column > 10.5` is `>= 11`.

    Raises InvalidInputError, naming column and value, if the two cannot be compared.
    """
    if value is None:
        return Constant(value=None)
    scale = _whole_scale(column)
    number = None if scale is None else _as_number(column, value)
    if scale is None or number is None:
        return Compare(column=column, op=op, value=_as_raw(column, value))
    if isinstance(number, float):
        return _compare_special(column, op, number)
    return _compare_number(column, op, number.scaleb(scale, _EXACT))


def member_of(column: Tested, values: Sequence[Value | None]) -> Predicate:
    """`column IN (values)`. Raises InvalidInputError as `compare_value` does."""
    found: dict[Raw, None] = {}
    for value in values:
        match compare_value(column, Comparison.EQ, value):
            case Compare(value=raw):
                found[raw] = None
    within = In(column=column, values=tuple(found)) if found else never(column)
    return Or(parts=(within, Constant(value=None))) if None in values else within


def any_of(parts: Sequence[Predicate]) -> Predicate:
    """OR of the parts. All = and IN of one column become one IN: that is judged at once, however many they are."""
    flat = [piece for part in parts for piece in (part.parts if isinstance(part, Or) else (part,))]
    folded = tuple(_one_of(found) for found in _by_listed_column(flat, _listed))
    return folded[0] if len(folded) == 1 else Or(parts=folded)


def all_of(parts: Sequence[Predicate]) -> Predicate:
    """AND of the parts. All <> and NOT IN of one column become one NOT IN."""
    flat = [piece for part in parts for piece in (part.parts if isinstance(part, And) else (part,))]
    folded = tuple(_none_of(found) for found in _by_listed_column(flat, _excluded))
    return folded[0] if len(folded) == 1 else And(parts=folded)


def _listed(predicate: Predicate) -> In | None:
    """What `=` and IN say, as IN."""
    match predicate:
        case Compare(column=column, op=Comparison.EQ, value=raw):
            return In(column=column, values=(raw,))
        case In():
            return predicate
    return None


def _excluded(predicate: Predicate) -> In | None:
    """What `<>` and NOT IN deny, as IN."""
    match predicate:
        case Compare(column=column, op=Comparison.NE, value=raw):
            return In(column=column, values=(raw,))
        case Not(part=part):
            return _listed(part)
    return None


def _by_listed_column(
    parts: Sequence[Predicate], read: Callable[[Predicate], In | None]
) -> Iterable[tuple[Predicate, list[In]]]:
    """Parts that list values of one column are one entry, at the place of the first; others are one each."""
    found: dict[tuple[str, object], tuple[Predicate, list[In]]] = {}
    for place, part in enumerate(parts):
        listed = read(part)
        key = ("part", place) if listed is None else ("column", _identity(listed.column))
        _, lists = found.setdefault(key, (part, []))
        if listed is not None:
            lists.append(listed)
    return found.values()


def _identity(tested: Tested) -> object:
    return tested.id if isinstance(tested, Column) else tested


def _one_of(found: tuple[Predicate, list[In]]) -> Predicate:
    first, lists = found
    return first if len(lists) < 2 else _united(lists)


def _none_of(found: tuple[Predicate, list[In]]) -> Predicate:
    first, lists = found
    return first if len(lists) < 2 else Not(part=_united(lists))


def _united(lists: Sequence[In]) -> In:
    values = dict.fromkeys(raw for each in lists for raw in each.values)
    return In(column=lists[0].column, values=tuple(values))


def always(column: Tested) -> Predicate:
    """TRUE, or NULL where the column is NULL."""
    if not column.nullable:
        return Constant(value=True)
    return Or(parts=(Not(part=IsNull(column=column)), Constant(value=None)))


def never(column: Tested) -> Predicate:
    """FALSE, or NULL where the column is NULL."""
    if not column.nullable:
        return Constant(value=False)
    return And(parts=(IsNull(column=column), Constant(value=None)))


def _whole_scale(column: Tested) -> int | None:
    """Digits after the point, for a column that holds whole numbers of some unit and is compared as numbers."""
    parts = decimal_parts(column.type)
    if parts is not None:
        return parts[1]
    return 0 if column.type in INTEGER_BITS or column.type == "date" else None


def _as_number(column: Tested, value: Value) -> Decimal | float | None:
    """What a number or date column is compared with: a number of its units; NaN or infinity as a float."""
    if column.type == "date":
        return _as_days(column, value)
    if isinstance(value, str):
        number = parse_number(value)
        return number if number is not None else _as_special(column, value)
    if isinstance(value, float):
        return Decimal(value) if math.isfinite(value) else value
    if isinstance(value, Decimal):
        return value
    raise wrong_literal(column, value, "a number")


def _as_special(column: Tested, text: str) -> float:
    try:
        number = float(str(raw_value("double", text)))
    except InvalidInputError:
        raise wrong_literal(column, text, "a number") from None
    return number


def _as_days(column: Tested, value: Value) -> Decimal | None:
    """Days since 1970; a time of day is a fraction of a day."""
    moment = parse_timestamp(value) if isinstance(value, str) else value
    if isinstance(moment, datetime):
        aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        days, rest = divmod(aware - _EPOCH, _DAY)
        return Decimal(days) + (Decimal("0.5") if rest else 0)
    if isinstance(moment, date):
        return Decimal(int(raw_value("date", moment)))
    raise wrong_literal(column, value, "a date like '2026-11-18'")


def _compare_number(column: Tested, op: Comparison, number: Decimal) -> Predicate:
    """Compare whole raw values with a number that may have a fraction, or lie beyond the column's range."""
    lowest, highest = _raw_range(column)
    floor = math.floor(number)
    is_whole = floor == number
    if is_whole and lowest <= floor <= highest:
        return Compare(column=column, op=op, value=floor)
    if op is Comparison.EQ:
        return never(column)
    if op is Comparison.NE:
        return always(column)
    if floor < lowest or floor >= highest:
        return always(column) if (floor < lowest) == (op in _ABOVE) else never(column)
    if op in _BELOW:
        return Compare(column=column, op=Comparison.LE, value=floor)
    return Compare(column=column, op=Comparison.GE, value=floor + 1)


def _raw_range(column: Tested) -> tuple[int, int]:
    parts = decimal_parts(column.type)
    if parts is not None:
        return 1 - 10 ** parts[0], 10 ** parts[0] - 1
    bits = 32 if column.type == "date" else INTEGER_BITS[column.type]
    return -(1 << bits - 1), (1 << bits - 1) - 1


def compare_raw(column: Tested, op: Comparison, raw: int) -> Predicate:
    """Of days and moments, with one that the column need not be able to hold."""
    bits = 32 if column.type == "date" else 64
    if -(1 << bits - 1) <= raw < 1 << bits - 1:
        return Compare(column=column, op=op, value=raw)
    if op in (Comparison.EQ, Comparison.NE):
        return never(column) if op is Comparison.EQ else always(column)
    return always(column) if (raw > 0) == (op in _BELOW) else never(column)


def _compare_special(column: Tested, op: Comparison, number: float) -> Predicate:
    """Compare whole raw values with infinity, or NaN, which is above it."""
    if op in (Comparison.EQ, Comparison.NE):
        return never(column) if op is Comparison.EQ else always(column)
    is_above_all = math.isnan(number) or number > 0
    return always(column) if is_above_all == (op in _BELOW) else never(column)


def _as_raw(column: Tested, value: Value) -> Raw:
    """The raw value of a column that is not compared as a whole number."""
    if not is_sortable(column.type):
        raise InvalidInputError(
            f"{described(column)} cannot be compared.",
            kind="invalid_predicate",
            remedy="Only IS NULL and IS NOT NULL work on nested columns.",
        )
    natural = _naturally(column, value)
    try:
        return raw_value(column.type, natural)
    except InvalidInputError as error:
        raise wrong_literal(column, value, error.remedy.removeprefix("Give ").removesuffix(".")) from None


def _naturally(column: Tested, value: Value) -> Value:
    """A date as the timestamp at which it starts, where a timestamp is wanted."""
    is_date = isinstance(value, date) and not isinstance(value, datetime)
    if is_date and column.type in ("timestamp", "timestamp_ntz"):
        return datetime.fromisoformat(f"{value!s}T00:00:00")
    return value


def described(tested: Tested) -> str:
    """As messages call it."""
    if isinstance(tested, Column):
        return f"Column {tested.name!r} of type {tested.type}"
    return f"{describe_tested(tested)!r}, which is {tested.type},"


def wrong_literal(column: Tested, value: Value, expected: str) -> InvalidInputError:
    """The error for a value that a column cannot be compared with."""
    shown = str(value) if isinstance(value, Decimal | date) else repr(value)
    shown = shown if len(shown) <= 80 else shown[:80] + "…"
    return InvalidInputError(
        f"{described(column)} cannot be compared with {shown}.",
        kind="invalid_predicate",
        remedy=f"Compare it with {expected}.",
    )


def all_equal(values: Mapping[Column, Raw | None]) -> Predicate:
    """Rows whose columns have just these values; None is NULL."""
    return And(parts=tuple(_equal(column, raw) for column, raw in values.items()))


def one_of(column: Column, values: Collection[Raw | None]) -> Predicate:
    """Rows whose column has one of these values; None is NULL."""
    return any_of([_equal(column, raw) for raw in values])


def _equal(column: Column, raw: Raw | None) -> Predicate:
    return IsNull(column=column) if raw is None else Compare(column=column, op=Comparison.EQ, value=raw)


def in_partition(partition_by: Sequence[Column], key: PartitionKey) -> Predicate:
    """Rows of one partition."""
    pairs = zip(partition_by, key, strict=True)
    return all_equal({column: None if part is None else sortable.decode(column.type, part) for column, part in pairs})


def in_any_partition(partition_by: Sequence[Column], keys: Collection[PartitionKey]) -> Predicate | None:
    """Rows of any of the partitions; None, for all rows, where naming each would take longer than looking at all."""
    if len(keys) > _MOST_NAMED:
        return None
    return Or(parts=tuple(in_partition(partition_by, key) for key in keys))
