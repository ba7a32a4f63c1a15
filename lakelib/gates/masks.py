"""Pure. Verdicts without the values of sensitive columns: what was counted and reckoned stays."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from lakelib.gates.expectations import column_arguments
from lakelib.model.gate import CheckResult

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
