"""What Great Expectations itself says, on a Spark data frame and with pandas on Arrow rows: the contract of the gates'
own kernels. Arguments and rows are put so that its two engines mean the same."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC
from decimal import Context, Decimal
from typing import Any

import great_expectations as gx
import pandas as pd
import pyarrow as pa
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.expectations.row_conditions import Column as GreatColumn

from lakelib.gates.arguments import fit_arguments as fitted
from lakelib.gates.evidence import MOST_VALUES, as_json, as_measure, as_sample
from lakelib.gates.expectations import VALUE_ARGUMENTS, column_arguments, looks_at_schema, parse_condition
from lakelib.model.gate import CheckResult, Status
from lakelib.model.schema import Column
from lakelib.specs.suite import Check

# For each decimal that it shows, Great Expectations asks who has called it, by a look at the source of every frame.
# Here that takes three times as long as all of its checks, and nobody who matters to it is among the callers.
gx.util.stack = tuple

_RESULT_FORMAT = {"result_format": "SUMMARY", "partial_unexpected_count": MOST_VALUES}
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WIDE = Context(prec=400)
"""Has room for every float that a decimal becomes."""
COMPARED_IN_PYTHON = frozenset(
    (
        "expect_column_max_to_be_between",
        "expect_column_min_to_be_between",
        "expect_column_most_common_value_to_be_in_set",
    )
)
"""Where Great Expectations compares a value that Spark has handed out; all else Spark compares itself."""

OF_FEW_VALUES: Mapping[str, tuple[int, bool]] = {
    "expect_column_quantile_values_to_be_between": (1, False),
    "expect_column_sum_to_be_between": (1, False),
    "expect_column_value_z_scores_to_be_less_than": (2, True),
}
"""Of a column with fewer values Spark says whether that is as expected, and pandas says something else."""

_AS_FLOATS = (
    "expect_column_max_to_be_between",
    "expect_column_mean_to_be_between",
    "expect_column_median_to_be_between",
    "expect_column_min_to_be_between",
    "expect_column_quantile_values_to_be_between",
    "expect_column_stdev_to_be_between",
    "expect_column_sum_to_be_between",
    "expect_column_value_z_scores_to_be_less_than",
    "expect_column_values_to_be_between",
)
_AS_OBJECTS = (
    "expect_column_pair_values_to_be_equal",
    "expect_column_pair_values_to_be_in_set",
    "expect_compound_columns_to_be_unique",
    "expect_multicolumn_values_to_be_equal",
    "expect_select_column_values_to_be_unique_within_record",
)

Found = dict[int, CheckResult]
"""Results by the place of their check."""


def run_on_arrow(
    checks: Sequence[Check], columns: Sequence[Column], read: Callable[[Sequence[str]], pa.Table]
) -> list[CheckResult]:
    """The results in the order of the checks. `read` gives all rows, in the columns asked for."""
    with _context() as context:
        found, left = _run_on_schema(context, checks, columns)
        if left:
            rows = read(_needed_columns(left.values(), columns))
            columns = [column for column in columns if column.name in rows.column_names]
            found |= {
                place: _of_few_values(check, rows) for place, check in left.items() if _has_few_values(check, rows)
            }
            left = {place: check for place, check in left.items() if place not in found}
            for form in ("arrow", "floats", "objects"):
                chosen = {place: check for place, check in left.items() if pandas_form(check.expectation) == form}
                if chosen:
                    batch = _pandas_batch(context, _FORMS[form](rows.select(_needed_columns(chosen.values(), columns))))
                    found |= _validate(batch, chosen, columns, on_spark=False)
    return [found[place] for place in range(len(checks))]


def run_on_spark(
    checks: Sequence[Check], columns: Sequence[Column], read: Callable[[Sequence[str]], Any]
) -> list[CheckResult]:
    """The results in the order of the checks. `read` gives a data frame of all rows, in the columns asked for, of a
    session whose time zone is UTC."""
    with _context() as context:
        found, left = _run_on_schema(context, checks, columns)
        if left:
            names = _needed_columns(left.values(), columns)
            frame = _without_zones(read(names), [column for column in columns if column.name in names]).persist()
            try:
                found |= _validate(_spark_batch(context, frame), left, columns, on_spark=True)
            finally:
                frame.unpersist()
    return [found[place] for place in range(len(checks))]


@contextmanager
def _context() -> Iterator[Any]:
    yield gx.get_context(mode="ephemeral", project_config=_quiet_config())


def _quiet_config() -> DataContextConfig:
    return DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
    )


def _run_on_schema(context: Any, checks: Sequence[Check], columns: Sequence[Column]) -> tuple[Found, dict[int, Check]]:
    """The results of what asks for names of columns only, which needs no row and all columns; and what is left."""
    left = {place: check for place, check in enumerate(checks) if not looks_at_schema(check.expectation)}
    chosen = {place: check for place, check in enumerate(checks) if place not in left}
    if not chosen:
        return {}, left
    empty = pd.DataFrame({column.name: [] for column in columns})
    return _validate(_pandas_batch(context, empty), chosen, columns, on_spark=False), left


def _needed_columns(checks: Any, columns: Sequence[Column]) -> list[str]:
    """The columns that the checks look at; the first one for those that only count rows."""
    asked = {name for check in checks for name in column_arguments(check.arguments)}
    return [column.name for column in columns if column.name in asked] or [columns[0].name]


def _has_few_values(check: Check, rows: pa.Table) -> bool:
    if check.expectation not in OF_FEW_VALUES:
        return False
    least, _ = OF_FEW_VALUES[check.expectation]
    return int(rows.num_rows - rows[check.arguments["column"]].null_count) < least


def _of_few_values(check: Check, rows: pa.Table) -> CheckResult:
    _, is_expected = OF_FEW_VALUES[check.expectation]
    status = Status.PASSED if is_expected else Status.FAILED
    found: dict[str, Any] = {}
    if "z_scores" in check.expectation:
        found = {"row_count": rows.num_rows, "unexpected_count": 0}
    if "quantile_ranges" in check.arguments:
        quantiles = check.arguments["quantile_ranges"]["quantiles"]
        found = {"observed": {"quantiles": list(quantiles), "values": [None] * len(quantiles)}}
    return _check_result(check, status, **found)


def pandas_form(expectation: str) -> str:
    """In which form pandas gives Spark's answers: "floats" where decimals are reckoned with or compared, "objects"
    where NULLs are compared, else "arrow"."""
    if expectation in _AS_FLOATS:
        return "floats"
    return "objects" if expectation in _AS_OBJECTS else "arrow"


# Rows as Great Expectations takes them


def _pandas_batch(context: Any, frame: pd.DataFrame) -> Any:
    return _batch(context.data_sources.add_pandas(f"pandas {len(context.data_sources.all())}"), frame)


def _spark_batch(context: Any, frame: Any) -> Any:
    """Great Expectations would cache the frame, too, and keep it."""
    return _batch(context.data_sources.add_spark("spark", persist=False), frame)


def _batch(source: Any, frame: Any) -> Any:
    definition = source.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")
    return definition.get_batch(batch_parameters={"dataframe": frame})


def _as_arrow(rows: pa.Table) -> pd.DataFrame:
    """The rows in their own types: NULL is not NaN, and no whole number becomes a float."""
    return rows.to_pandas(types_mapper=pd.ArrowDtype)


def _as_floats(rows: pa.Table) -> pd.DataFrame:
    """Decimals as floats: Spark reckons with them so."""
    fields = [field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field for field in rows.schema]
    return _as_arrow(rows.cast(pa.schema(fields)))


def _as_objects(rows: pa.Table) -> pd.DataFrame:
    """Python's values: None equals nothing, where Arrow's NULL is neither equal nor unequal."""
    return pd.DataFrame({name: pd.Series(rows[name].to_pylist(), dtype=object) for name in rows.column_names})


_FORMS: Mapping[str, Callable[[pa.Table], pd.DataFrame]] = {
    "arrow": _as_arrow,
    "floats": _as_floats,
    "objects": _as_objects,
}


def _without_zones(frame: Any, columns: Sequence[Column]) -> Any:
    """Moments as UTC without a zone: Spark hands out those that have one in the zone of this machine."""
    shown = []
    for column in columns:
        name = "`" + column.name.replace("`", "``") + "`"
        shown.append(f"cast({name} as timestamp_ntz) as {name}" if column.type == "timestamp" else name)
    return frame.selectExpr(*shown)


# Checks as Great Expectations takes them, and what it makes of them


def _validate(batch: Any, checks: Mapping[int, Check], columns: Sequence[Column], *, on_spark: bool) -> Found:
    suite = gx.ExpectationSuite(
        name="gate",
        expectations=[
            {
                "type": check.expectation,
                "kwargs": _with_condition(fit_arguments(check, columns, on_spark=on_spark)),
                "meta": {"place": place},
            }
            for place, check in checks.items()
        ],
    )
    try:
        validated = batch.validate(suite, result_format=_RESULT_FORMAT)
    except Exception as error:  # whatever Great Expectations stumbles over, nothing is said of the data
        return {place: _check_result(check, Status.ERRORED, detail=_shown(error)) for place, check in checks.items()}
    by_place = {result.expectation_config.meta["place"]: result for result in validated.results}
    types = {column.name: column.type for column in columns}
    return {
        place: _result(check, by_place[place], types.get(check.arguments.get("column", ""), ""))
        for place, check in checks.items()
    }


def _with_condition(arguments: dict[str, Any]) -> dict[str, Any]:
    """The row condition as Great Expectations' own value."""
    condition = parse_condition(arguments.get("row_condition"))
    if condition is None:
        return arguments
    column = GreatColumn(condition.column)
    if condition.operator == "not null":
        return arguments | {"row_condition": column.is_not_null()}
    compared = _COMPARISONS[condition.operator](column, condition.value)
    if condition.operator == "!=":  # of NULLs pandas says that they differ from a text
        compared = compared & column.is_not_null()
    return arguments | {"row_condition": compared}


def _result(check: Check, result: Any, column_type: str) -> CheckResult:
    """An error is told apart from bad data: both have no success."""
    detail = _error_of(result.exception_info)
    found = result.result or {}
    row_count = _count(found.get("element_count"))
    status = Status.ERRORED if detail else Status.PASSED if result.success else Status.FAILED
    return _check_result(
        check,
        status,
        observed=as_measure(found.get("observed_value", found.get("details"))),
        row_count=row_count,
        unexpected_count=0 if row_count == 0 else _count(found.get("unexpected_count")),
        sample=as_sample(_exact_again(found.get("partial_unexpected_list") or (), column_type)),
        detail=detail,
    )


def _exact_again(values: Sequence[Any], column_type: str) -> Sequence[Any]:
    """Decimals that were floats to be reckoned with, as the column shows them."""
    if not column_type.startswith("decimal"):
        return values
    unit = Decimal(1).scaleb(-int(column_type.removesuffix(")").rpartition(",")[2]))
    return [_WIDE.quantize(Decimal(repr(value)), unit) if isinstance(value, float) else value for value in values]


def _check_result(check: Check, status: Status, **found: Any) -> CheckResult:
    return CheckResult(
        name=check.name,
        expectation=check.expectation,
        arguments={name: as_json(value) for name, value in check.arguments.items()},
        scope=check.scope,
        severity=check.severity,
        status=status,
        **found,
    )


def _count(value: Any) -> int | None:
    return None if value is None else int(value)


def _error_of(info: Any) -> str:
    """Great Expectations tells of one error, or of several by the metric that failed."""
    if not info:
        return ""
    each = [info] if "raised_exception" in info else list(info.values())
    messages = [
        str(one.get("exception_message") or "unknown error") for one in each if one and one.get("raised_exception")
    ]
    return _shown(" / ".join(dict.fromkeys(messages))) if messages else ""


def _shown(error: object) -> str:
    return str(as_json(str(error).strip() or type(error).__name__))


def fit_arguments(check: Check, columns: Sequence[Column], *, on_spark: bool) -> dict[str, Any]:
    """Spark hands moments out without a zone, and Great Expectations compares some of them in Python."""
    found = fitted(check, columns)
    kind = next((column.type for column in columns if column.name == found.get("column")), "")
    if kind in ("timestamp", "timestamp_ntz"):
        zoned = check.expectation not in COMPARED_IN_PYTHON if on_spark else kind == "timestamp"
        for name in VALUE_ARGUMENTS.get(check.expectation, ()):
            if isinstance(found.get(name), list):
                found[name] = [_zoned(value, zoned) for value in found[name]]
            elif found.get(name) is not None:
                found[name] = _zoned(found[name], zoned)
    return found


def _zoned(moment: Any, zoned: bool) -> Any:
    return moment.replace(tzinfo=UTC if zoned else None)


def utc_session(session: Any) -> Any:
    """A session of the same application whose time zone is UTC. Great Expectations asks hundreds of small queries, each
    of another form: to generate and compile code for each takes longer than to carry it out."""
    made = session.newSession()
    made.conf.set("spark.sql.codegen.wholeStage", "false")
    made.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    made.conf.set("spark.sql.session.timeZone", "UTC")
    return made
