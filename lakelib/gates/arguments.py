"""Pure. Arguments in the types of the columns that they are compared with, so that both engines compare alike.

A suite's moments are UTC where they name no zone. Great Expectations compares some of them in SQL, where moments have a
zone, and some in Python, with what Spark hands out, which has none.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from lakelib.errors import InvalidInputError
from lakelib.gates.expectations import COMPARED_IN_PYTHON, NUMBER_TYPES, VALUE_ARGUMENTS
from lakelib.model.schema import Column
from lakelib.specs.suite import Check


def fit_arguments(check: Check, columns: Sequence[Column], *, on_spark: bool) -> dict[str, Any]:
    """Raises InvalidInputError, its kind the argument's name, for a value that the column's type has not."""
    fitted = dict(check.arguments)
    column = next((column for column in columns if column.name == check.arguments.get("column")), None)
    fit = None if column is None else _fit_for(column.type, zoned=_zoned(column.type, check.expectation, on_spark))
    for name in VALUE_ARGUMENTS.get(check.expectation, ()):
        if fit is not None and fitted.get(name) is not None:
            fitted[name] = _fit_all(name, fitted[name], fit)
    return fitted


def _zoned(column_type: str, expectation: str, on_spark: bool) -> bool:
    """Whether moments are to have a zone. On Spark those are to have none that Python compares."""
    return expectation not in COMPARED_IN_PYTHON if on_spark else column_type == "timestamp"


def _fit_for(column_type: str, *, zoned: bool) -> Callable[[Any], Any]:
    """Of another type a value is never equal in process, where Spark converts one of the two, or refuses to."""
    match column_type:
        case "timestamp" | "timestamp_ntz":
            return _zoned_moment if zoned else _plain_moment
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
        raise InvalidInputError(f"{name} holds null, which Spark takes for every value.", kind=name)
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
    """NaN is larger than every number on Spark: as a bound it would let all of them pass."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError
    if math.isnan(value):
        raise ValueError
    return value


def _exact(value: Any) -> Any:
    """A float as it is written: 0.1 is a tenth. Great Expectations turns bounds into floats again, sets it leaves."""
    value = _number(value)
    return Decimal(repr(value)) if isinstance(value, float) else value
