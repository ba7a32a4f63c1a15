"""Pure. What a check found, as JSON and a person can hold it: bounded, without what PostgreSQL's JSON has no place for,
and without the values of sensitive columns: what was counted and reckoned stays."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from lakelib.gates.expectations import column_arguments
from lakelib.model.gate import CheckResult

MOST_VALUES = 20
_MOST_CHARACTERS = 300
_MOST_BYTES = 100
_MOST_LEVELS = 4
_MOST_NESTED_CHARACTERS = 8_000
"""Of a collection as JSON: it may be wide on each of its levels."""
MASK = "***"
_OBSERVES_VALUES = frozenset(
    (
        "expect_column_max_to_be_between",
        "expect_column_median_to_be_between",
        "expect_column_min_to_be_between",
        "expect_column_most_common_value_to_be_in_set",
        "expect_column_quantile_values_to_be_between",
    )
)


_NO_VALUES = ("NAType", "NaTType")
"""The types of pandas' values that stand for NULL."""
_LARGEST_EXACT = 2**53


def as_json(value: Any, *, _level: int = 0) -> Any:
    """The value as None, bool, int, float, str, list or dict. What is long is cut, and says so.

    Numbers that JSON's readers would change, NaN and infinities are text; so are decimals, dates and moments (UTC).
    """
    value = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
    if value is None or type(value).__name__ in _NO_VALUES:
        return None
    match value:
        case bool():
            return value
        case int():
            return value if abs(value) <= _LARGEST_EXACT else _text(str(value))
        case float() if abs(value) > _LARGEST_EXACT and math.isfinite(value):
            return repr(value)  # PostgreSQL would give it back as another whole number
        case float():
            return value if math.isfinite(value) else _float_name(value)
        case str():
            return _text(value)
        case bytes() | bytearray() | memoryview():
            return _hexadecimal(bytes(value))
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return moment.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case Decimal():
            return _text(format(value, "f") if value.is_finite() else str(value))
    if _level >= _MOST_LEVELS:
        return _text(str(value))
    found = _collection(value, _level + 1)
    written = "" if _level else json.dumps(found, ensure_ascii=False)
    return found if len(written) <= _MOST_NESTED_CHARACTERS else _text(written)


def as_measure(value: Any) -> Any:
    """As `as_json`, for what was measured of all rows: a decimal is a number there, as on Spark."""
    if isinstance(value, Mapping):
        return {str(name): as_measure(inner) for name, inner in list(value.items())[:MOST_VALUES]}
    if isinstance(value, list | tuple):
        return as_json([float(each) if isinstance(each, Decimal) else each for each in value])
    return as_json(float(value) if isinstance(value, Decimal) else value)


def as_sample(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(as_json(value) for value in values[:MOST_VALUES])


def _collection(value: Any, level: int) -> Any:
    match value:
        case Mapping():
            shown = list(value.items())[:MOST_VALUES]
            found = {_text(str(name)): as_json(inner, _level=level) for name, inner in shown}
            return found if len(value) <= MOST_VALUES else found | {"…": f"{len(value) - MOST_VALUES} more"}
        case list() | tuple() | set() | frozenset():
            several = [as_json(inner, _level=level) for inner in list(value)[:MOST_VALUES]]
            return several if len(value) <= MOST_VALUES else [*several, f"… {len(value) - MOST_VALUES} more"]
        case _:
            return _text(str(value))


def _float_name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _hexadecimal(value: bytes) -> str:
    return "0x" + value[:_MOST_BYTES].hex() + ("…" if len(value) > _MOST_BYTES else "")


def _text(value: str) -> str:
    """PostgreSQL keeps neither NUL nor lone surrogates: they are shown as escapes."""
    shown = value if len(value) <= _MOST_CHARACTERS else value[:_MOST_CHARACTERS] + "…"
    return shown.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


# Masks


def mask_result(result: CheckResult, sensitive: Collection[str]) -> CheckResult:
    """NULL stays NULL. Errors may name values, and are not told."""
    named = column_arguments(result.arguments)
    shown = [name for name, argument in named.items() if argument != "row_condition"]
    if not any(name in sensitive for name in named):
        return result
    observed = result.observed
    if result.expectation in _OBSERVES_VALUES and observed is not None:
        observed = MASK
    return replace(
        result,
        observed=observed,
        sample=tuple(_masked(value, shown, sensitive) for value in result.sample),
        detail=result.detail and f"{MASK} (of a sensitive column)",
    )


def _masked(value: Any, names: list[str], sensitive: Collection[str]) -> Any:
    if isinstance(value, dict):
        return {name: _mask(each) if name in sensitive else each for name, each in value.items()}
    if isinstance(value, list) and len(names) > 1:
        return [_mask(each) if name in sensitive else each for name, each in zip(names, value, strict=True)]
    return _mask(value) if names and names[0] in sensitive else value


def _mask(value: Any) -> Any:
    return None if value is None else MASK
