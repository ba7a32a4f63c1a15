"""Pure. Arguments in the types of the columns that they are compared with. A suite's moments are UTC where they name no
zone."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from lakelib.errors import InvalidInputError
from lakelib.gates.expectations import NUMBER_TYPES, VALUE_ARGUMENTS
from lakelib.model.schema import Column
from lakelib.specs.suite import Check


def fit_arguments(check: Check, columns: Sequence[Column]) -> dict[str, Any]:
    """Raises InvalidInputError, its kind the argument's name, for a value that the column's type has not."""
    fitted = dict(check.arguments)
    types = {column.name: column.type for column in columns}
    if (column := fitted.get("column")) in types:
        for name in VALUE_ARGUMENTS.get(check.expectation, ()):
            if fitted.get(name) is not None:
                fitted[name] = _fit_all(name, fitted[name], _fit_for(types[column]))
    pairs = fitted.get("value_pairs_set")
    if isinstance(pairs, list) and {fitted.get("column_A"), fitted.get("column_B")} <= types.keys():
        fits = [_fit_for(types[fitted[name]]) for name in ("column_A", "column_B")]
        fitted["value_pairs_set"] = [_fit_pair(pair, fits) for pair in pairs]
    return fitted


def _fit_pair(pair: Any, fits: Sequence[Callable[[Any], Any]]) -> tuple[Any, ...]:
    """A pair may hold NULL."""
    try:
        return tuple(None if value is None else fit(value) for value, fit in zip(pair, fits, strict=True))
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"value_pairs_set holds {pair!r}, which the columns cannot hold.", kind="value_pairs_set"
        ) from None


def _fit_for(column_type: str) -> Callable[[Any], Any]:
    match column_type:
        case "timestamp":
            return _zoned_moment
        case "timestamp_ntz":
            return _plain_moment
        case "date":
            return _day
        case "string":
            return _of_type(str)
        case "boolean":
            return _of_type(bool)
        case "binary":
            return _of_type(bytes)
        case _ if column_type.startswith("decimal"):
            return _exact
        case _ if column_type in NUMBER_TYPES:
            return _number
    return _of_type()


def _fit_all(name: str, given: Any, fit: Callable[[Any], Any]) -> Any:
    if isinstance(given, Mapping):
        return given
    values = list(given) if isinstance(given, list | tuple | set) else None
    if values is not None and None in values:
        raise InvalidInputError(f"{name} holds null: NULL is neither in a set nor outside it.", kind=name)
    try:
        return fit(given) if values is None else [fit(value) for value in values]
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} is {given!r}, which the column cannot hold.", kind=name) from None


def _plain_moment(value: Any) -> datetime:
    """In UTC, without a zone."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        if not isinstance(value, date):
            raise TypeError
        value = datetime.combine(value, time())
    moment: datetime = value
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _zoned_moment(value: Any) -> datetime:
    return _plain_moment(value).replace(tzinfo=UTC)


def _day(value: Any) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, datetime):
        if value.time() != time() or value.tzinfo:
            raise ValueError
        return value.date()
    if not isinstance(value, date):
        raise TypeError
    return value


def _of_type(*types: type) -> Callable[[Any], Any]:
    def fit(value: Any) -> Any:
        if not isinstance(value, types):
            raise TypeError
        return value

    return fit


def _number(value: Any) -> Any:
    """NaN is comparable with nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError
    if math.isnan(value):
        raise ValueError
    return value


def _exact(value: Any) -> Any:
    """A float as it is written: 0.1 is a tenth."""
    value = _number(value)
    return Decimal(repr(value)) if isinstance(value, float) else value
