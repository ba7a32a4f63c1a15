"""Pure. What has to be found out of the rows so that checks can be judged: the plan of one pass for all of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.gates.arguments import fit_arguments
from lakelib.gates.expectations import looks_at_schema, parse_condition
from lakelib.gates.patterns import as_re2
from lakelib.gates.questions import FarFromMean, Membership, MostCommon, Quantiles, Question, Repeats
from lakelib.gates.row_tests import (
    AllDifferent,
    AllEqual,
    InLimits,
    InSet,
    IsNull,
    LengthInLimits,
    Limits,
    Matches,
    NotNull,
    PairGreater,
    PairIn,
    PassesApart,
    RowTest,
    SumEquals,
)
from lakelib.gates.rows import Domain
from lakelib.model.schema import Column
from lakelib.specs.suite import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """How many rows do not pass a test, and what some of them hold."""

    base: Domain
    domain: Domain
    columns: tuple[str, ...]
    """What a sample shows."""
    test: RowTest | PassesApart
    sample: int
    seconds: float
    """How long it may take where it may take for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised:
    base: Domain
    domain: Domain
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many rows there are, and how many are left without NULLs."""

    base: Domain
    domain: Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The values that columns have together in the rows of a domain."""

    domain: Domain
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of gathered values. Who asks the same gets the same answer."""

    base: Domain
    gathered: Gathered
    question: Question

    @property
    def domain(self) -> Domain:
        return self.gathered.domain


_PAIR = ("column_A", "column_B")

Need = Tested | Summarised | Counted | Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePlan:
    """What each check needs to know of the rows, by the check's place. Those that look at names of columns only need
    nothing."""

    needs: Mapping[int, Need]
    columns: tuple[str, ...]
    """What has to be read; nothing for no needs."""


def plan_checks(checks: Sequence[Check], columns: Sequence[Column]) -> GatePlan:
    needs = {
        place: _need(check, columns) for place, check in enumerate(checks) if not looks_at_schema(check.expectation)
    }
    asked = {name for need in needs.values() for name in _columns_of(need)}
    read = tuple(column.name for column in columns if column.name in asked)
    return GatePlan(needs=needs, columns=read or (tuple(column.name for column in columns[:1]) if needs else ()))


def _columns_of(need: Need) -> set[str]:
    found = {name for domain in (need.base, need.domain) for name in domain.without}
    found |= {domain.condition.column for domain in (need.base, need.domain) if domain.condition}
    match need:
        case Tested():
            found.update(need.columns)
        case Summarised():
            found.add(need.column)
        case Asked():
            found.update(need.gathered.columns)
    return found


def _need(check: Check, columns: Sequence[Column]) -> Need:
    arguments = fit_arguments(check, columns)
    base = Domain(condition=parse_condition(arguments.get("row_condition")))
    if "column" in arguments:
        return _of_column(check, arguments, base)
    names = tuple(arguments.get("column_list", [arguments[name] for name in _PAIR if name in arguments]))
    if not names:
        return Counted(base=base, domain=base)
    ignored = str(arguments.get("ignore_row_if", "all"))
    without = () if ignored in ("never", "neither") else names
    domain = Domain(condition=base.condition, without=without, where_all=ignored.startswith(("all", "both")))
    if check.expectation == "expect_compound_columns_to_be_unique":
        return Asked(base=base, gathered=Gathered(domain=domain, columns=names), question=Repeats(sample=check.sample))
    return Tested(
        base=base,
        domain=domain,
        columns=names,
        test=_TESTS_OF_SEVERAL[check.expectation](names, arguments),
        sample=check.sample,
        seconds=check.limit_seconds,
    )


def _of_column(check: Check, arguments: Mapping[str, Any], base: Domain) -> Need:
    column, what = arguments["column"], check.expectation
    domain = Domain(condition=base.condition, without=(column,))
    if what in _TESTS_OF_NULLS:
        return Tested(
            base=base,
            domain=base,
            columns=(column,),
            test=_TESTS_OF_NULLS[what](column=column),
            sample=check.sample,
            seconds=check.limit_seconds,
        )
    if what in _TESTS:
        return Tested(
            base=base,
            domain=domain,
            columns=(column,),
            test=_TESTS[what](column, arguments),
            sample=check.sample,
            seconds=check.limit_seconds,
        )
    if what in _QUESTIONS:
        gathered = Gathered(domain=domain, columns=(column,))
        return Asked(base=base, gathered=gathered, question=_QUESTIONS[what](arguments, check.sample))
    if what == "expect_column_proportion_of_non_null_values_to_be_between":
        return Counted(base=base, domain=domain)
    return Summarised(base=base, domain=domain, column=column)


def limits_of(arguments: Mapping[str, Any]) -> Limits:
    return Limits(
        low=arguments.get("min_value"),
        high=arguments.get("max_value"),
        strict_low=bool(arguments.get("strict_min")),
        strict_high=bool(arguments.get("strict_max")),
    )


_TESTS_OF_NULLS: Mapping[str, Any] = {
    "expect_column_values_to_be_null": IsNull,
    "expect_column_values_to_not_be_null": NotNull,
}


def _pattern_test(column: str, patterns: Sequence[str], *, every: bool = False, negated: bool = False) -> Any:
    said = [as_re2(pattern) for pattern in patterns]
    if None in said:
        return PassesApart(column=column, kind="patterns", argument=(tuple(patterns), every, negated))
    return Matches(column=column, patterns=tuple(each for each in said if each), every=every, negated=negated)


_TESTS: Mapping[str, Callable[[str, Mapping[str, Any]], RowTest | PassesApart]] = {
    "expect_column_value_lengths_to_be_between": lambda column, given: LengthInLimits(
        column=column, limits=limits_of(given)
    ),
    "expect_column_value_lengths_to_equal": lambda column, given: LengthInLimits(
        column=column, limits=Limits(low=given["value"], high=given["value"])
    ),
    "expect_column_values_to_be_between": lambda column, given: InLimits(column=column, limits=limits_of(given)),
    "expect_column_values_to_be_in_set": lambda column, given: InSet(column=column, members=tuple(given["value_set"])),
    "expect_column_values_to_not_be_in_set": lambda column, given: InSet(
        column=column, members=tuple(given["value_set"]), negated=True
    ),
    "expect_column_values_to_match_regex": lambda column, given: _pattern_test(column, [given["regex"]]),
    "expect_column_values_to_not_match_regex": lambda column, given: _pattern_test(
        column, [given["regex"]], negated=True
    ),
    "expect_column_values_to_match_regex_list": lambda column, given: _pattern_test(
        column, given["regex_list"], every=given.get("match_on") == "all"
    ),
    "expect_column_values_to_not_match_regex_list": lambda column, given: _pattern_test(
        column, given["regex_list"], negated=True
    ),
    "expect_column_values_to_be_json_parseable": lambda column, _: PassesApart(
        column=column, kind="json", argument=None
    ),
    "expect_column_values_to_match_json_schema": lambda column, given: PassesApart(
        column=column, kind="json schema", argument=given["json_schema"]
    ),
    "expect_column_values_to_match_strftime_format": lambda column, given: PassesApart(
        column=column, kind="moment", argument=given["strftime_format"]
    ),
}

_TESTS_OF_SEVERAL: Mapping[str, Callable[[tuple[str, ...], Mapping[str, Any]], RowTest]] = {
    "expect_column_pair_values_a_to_be_greater_than_b": lambda names, given: PairGreater(
        left=names[0], right=names[1], or_equal=bool(given.get("or_equal"))
    ),
    "expect_column_pair_values_to_be_equal": lambda names, _: AllEqual(columns=names),
    "expect_column_pair_values_to_be_in_set": lambda names, given: PairIn(
        left=names[0], right=names[1], pairs=tuple((first, second) for first, second in given["value_pairs_set"])
    ),
    "expect_multicolumn_sum_to_equal": lambda names, given: SumEquals(columns=names, total=given["sum_total"]),
    "expect_multicolumn_values_to_be_equal": lambda names, _: AllEqual(columns=names),
    "expect_select_column_values_to_be_unique_within_record": lambda names, _: AllDifferent(columns=names),
}


def _quantiles(given: Mapping[str, Any], _: int) -> Question:
    return Quantiles(
        shares=tuple(given["quantile_ranges"]["quantiles"]),
        interpolation=given.get("allow_relative_error") or "nearest",
    )


_QUESTIONS: Mapping[str, Callable[[Mapping[str, Any], int], Question]] = {
    "expect_column_values_to_be_unique": lambda _, sample: Repeats(sample=sample),
    "expect_column_unique_value_count_to_be_between": lambda _, __: Repeats(),
    "expect_column_proportion_of_unique_values_to_be_between": lambda _, __: Repeats(),
    "expect_column_distinct_values_to_be_in_set": lambda given, sample: Membership(
        members=tuple(given["value_set"]), sample=sample
    ),
    "expect_column_distinct_values_to_contain_set": lambda given, _: Membership(members=tuple(given["value_set"])),
    "expect_column_distinct_values_to_equal_set": lambda given, sample: Membership(
        members=tuple(given["value_set"]), sample=sample
    ),
    "expect_column_most_common_value_to_be_in_set": lambda given, sample: MostCommon(
        members=tuple(given["value_set"]), sample=sample and sample + 1
    ),
    "expect_column_median_to_be_between": lambda _, __: Quantiles(shares=(0.5,), interpolation="linear"),
    "expect_column_quantile_values_to_be_between": _quantiles,
    "expect_column_value_z_scores_to_be_less_than": lambda given, sample: FarFromMean(
        threshold=given["threshold"], double_sided=given["double_sided"], sample=sample
    ),
}
