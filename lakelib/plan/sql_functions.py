"""Pure. What people's queries may use besides what transforms may: computing with doubles, quotients of decimals, more
functions. Each means what it means in Spark, up to the last digits of a double."""

import math
from collections.abc import Mapping

from sqlglot import exp

from lakelib.errors import OnlySparkError
from lakelib.plan.local_functions import FUNCTIONS, aggregated, ordered
from lakelib.plan.local_scalars import SCALARS, type_of
from lakelib.plan.local_translator import ARGUMENTS as ARGUMENTS_OF_TRANSFORMS
from lakelib.plan.local_translator import (
    MOMENTS,
    Known,
    Translate,
    Translator,
    check_arguments,
    field_of,
    parts_of,
    text_of,
    whole_number,
)
from lakelib.plan.local_types import (
    INTEGERS,
    VOID,
    WRONG,
    Value,
    cast,
    decimal_parts,
    decimal_type,
    duck_type,
    failing,
    is_decimal,
    is_number,
    literal,
    typed,
)
from lakelib.plan.sql_nested import NESTED, NESTED_ARGUMENTS, collected
from lakelib.plan.sqltext import quoted

_MOST_DIGITS = 38
_LEAST_SCALE = 6
"""Of places behind the point as many are kept where a decimal would have more digits than there are."""
_SMALL_DIGITS = 18
"""A decimal of so many digits is a whole number of 64 bits."""
_FRAMES = ("ROWS", "RANGE")


# Names and parameters


def _parameter(self: Translator, node: exp.Expr) -> Value:
    name = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
    kind = self.parameters.get(name)
    if kind is None:
        raise OnlySparkError(
            f"the parameter {name!r}, which has no value",
            kind="missing_parameter",
            remedy=f"Give its value by name: lake.sql(text, {name}=…), or --param {name}=… at a shell.",
        )
    return (
        Value(sql="NULL", type=VOID)
        if kind == VOID
        else Value(sql=f"CAST(${parameter_name(name)} AS {duck_type(kind)})", type=kind)
    )


def parameter_name(name: str) -> str:
    """What it is called in DuckDB's text, where anything else than letters and digits would be read as SQL."""
    return f"p{name.encode().hex()}x"


def _field(self: Translator, node: exp.Expr) -> Value:
    """Of a struct."""
    return field_of(self.value(node.this), node.expression.name)


# Numbers


def _bounded(precision: int, scale: int) -> str:
    """The decimal that Spark takes: of more digits than there are it gives up places behind the point."""
    if precision <= _MOST_DIGITS:
        return decimal_type(precision, scale)
    kept = max(_MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
    return decimal_type(_MOST_DIGITS, kept)


def _two_numbers(self: Translator, node: exp.Expr) -> tuple[Value, Value, str]:
    one, other = self.value(node.this), self.value(node.expression)
    if one.type == VOID or other.type == VOID:
        raise OnlySparkError(f"arithmetic with NULL: {quoted(node)}")
    if not is_number(one.type) or not is_number(other.type):
        raise OnlySparkError(f"arithmetic with {one.type} and {other.type}: {quoted(node)}")
    decimals = [is_decimal(each.type) for each in (one, other)]
    if any(decimals) and not {one.type, other.type} & {"float", "double"}:
        return one, other, "decimal"
    return one, other, self.common((one, other), "arithmetic")


def _sum_of(sign: str) -> Translate:
    exact = SCALARS[exp.Add if sign == "+" else exp.Sub]

    def translate(self: Translator, node: exp.Expr) -> Value:
        if isinstance(node.expression, exp.Interval) or isinstance(node.this, exp.Interval):
            return _moved(self, node, sign)
        if sign == "-" and _is_moment(self, node.this) and _is_moment(self, node.expression):
            raise OnlySparkError(f"{quoted(node)}: datediff tells how many days there are between two")
        one, other, kind = _two_numbers(self, node)
        if kind != "decimal":
            if kind in INTEGERS:
                return exact(self, node)
            return Value(sql=f"({typed(one, kind).sql} {sign} {typed(other, kind).sql})", type=kind)
        (digits, scale), (more_digits, more_scale) = parts_of(one), parts_of(other)
        wider = max(scale, more_scale)
        needed = max(digits - scale, more_digits - more_scale) + wider
        kind = _bounded(needed + 1, wider)
        if scale == more_scale and needed < _MOST_DIGITS and _is_narrow(self, node):
            return Value(sql=f"({one.sql} {sign} {other.sql})", type=kind)
        if needed < _MOST_DIGITS and needed != _SMALL_DIGITS:  # DuckDB gives it one digit more, as Spark does
            own = decimal_type(needed, wider)
            return Value(sql=f"({typed(one, own).sql} {sign} {typed(other, own).sql})", type=kind)
        return Value(
            sql=f"CAST({typed(one, kind).sql} {sign} {typed(other, kind).sql} AS {duck_type(kind)})", type=kind
        )

    return translate


def _is_moment(self: Translator, node: exp.Expr) -> bool:
    return self.value(node).type in MOMENTS


def _product(self: Translator, node: exp.Expr) -> Value:
    one, other, kind = _two_numbers(self, node)
    if kind != "decimal":
        return Value(sql=f"({typed(one, kind).sql} * {typed(other, kind).sql})", type=kind)
    (digits, scale), (more_digits, more_scale) = parts_of(one), parts_of(other)
    kind = _bounded(digits + more_digits + 1, scale + more_scale)
    first, second = typed(one, decimal_type(digits, scale)), typed(other, decimal_type(more_digits, more_scale))
    if scale + more_scale < _SMALL_DIGITS and _is_narrow(self, node):
        return Value(sql=f"({first.sql} * {second.sql})", type=kind)
    if digits + more_digits > _SMALL_DIGITS >= max(digits, more_digits):
        first = typed(one, decimal_type(_SMALL_DIGITS + 1, scale))
    return Value(sql=f"CAST({first.sql} * {second.sql} AS {duck_type(kind)})", type=kind)


def _is_narrow(self: Translator, node: exp.Expr) -> bool:
    """Whether it is a product that is summed, or a sum of some. DuckDB computes with small decimals as such, four times
    as fast. Where they overflow it says so."""
    is_summed = isinstance(node.find_ancestor(exp.AggFunc, exp.Query), exp.AggFunc)
    return self.narrow and is_summed and node.find(exp.Mul) is not None


def _quotient(self: Translator, node: exp.Expr) -> Value:
    one, other, kind = _two_numbers(self, node)
    if kind != "decimal":
        return _unless_zero(typed(one, "double"), "/", typed(other, "double"), "double")
    (digits, scale), (more_digits, more_scale) = parts_of(one), parts_of(other)
    places = max(_LEAST_SCALE, scale + more_digits + 1)
    kind = _bounded(digits - scale + more_scale + places, places)
    return _exact_quotient(one, (digits, scale), other, (more_digits, more_scale), kind)


def _exact_quotient(one: Value, parts: tuple[int, int], other: Value, more: tuple[int, int], kind: str) -> Value:
    """Rounded half up, in whole numbers of the smallest unit. What has no room there is an error."""
    found = decimal_parts(Value(sql="", type=kind))
    assert found is not None
    shift = found[1] + more[1] - parts[1]
    above, below = (_units(one, parts, max(0, shift)), _units(other, more, max(0, -shift)))
    half = f"((2 * {above} + sign({above}) * abs({below})) // (2 * {below}))"
    quotient = f"({half}::DECIMAL(38,0) * CAST({_unit(found[1])} AS DECIMAL({found[1] + 1},{found[1]})))"
    wrong = failing(WRONG, "a division by zero")
    sql = (
        f"CASE WHEN {other.sql} = 0 AND {one.sql} IS NOT NULL THEN {wrong}"
        f" ELSE CAST({quotient} AS {duck_type(kind)}) END"
    )
    return Value(sql=sql, type=kind)


def _units(value: Value, parts: tuple[int, int], shift: int) -> str:
    """A decimal as a whole number of units, 10^shift times as many."""
    digits = f"replace(CAST({typed(value, decimal_type(*parts)).sql} AS VARCHAR), '.', '')"
    return f"(CAST({digits} AS HUGEINT) * CAST({literal(str(10**shift))} AS HUGEINT))"


def _unit(places: int) -> str:
    return literal("1" if places == 0 else "0." + "0" * (places - 1) + "1")


def _unless_zero(one: Value, sign: str, other: Value, kind: str) -> Value:
    wrong = failing(WRONG, "a division by zero")
    is_wrong = f"{other.sql} = 0 AND {one.sql} IS NOT NULL"
    return Value(sql=f"CASE WHEN {is_wrong} THEN {wrong} ELSE {one.sql} {sign} {other.sql} END", type=kind)


def _number(self: Translator, node: exp.Expr) -> Value:
    """Also with an exponent."""
    if not node.args.get("is_string") and "e" in str(node.this).lower() and math.isfinite(float(str(node.this))):
        return Value(sql=f"CAST({float(str(node.this))!r} AS DOUBLE)", type="double")
    return SCALARS[exp.Literal](self, node)


def _negative(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node.this)
    return Value(sql=f"(-{value.sql})", type="float") if value.type == "float" else SCALARS[exp.Neg](self, node)


def _absolute(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node.this)
    if value.type in ("float", "double"):
        return Value(sql=f"abs({value.sql})", type=value.type)
    return SCALARS[exp.Abs](self, node)


def _rounded(self: Translator, node: exp.Expr) -> Value:
    value, places = self.value(node.this), node.args.get("decimals")
    wanted = 0 if places is None else whole_number(places)
    if value.type in ("float", "double"):
        return Value(sql=f"round({value.sql}, {wanted})", type=value.type)
    return value if value.type in INTEGERS else SCALARS[exp.Round](self, node)


def _whole(function: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        check_arguments(node, "this")
        value = self.value(node.this)
        parts = decimal_parts(value, by_digits=False) if is_decimal(value.type) else None
        if parts is not None:
            kind = decimal_type(min(_MOST_DIGITS, parts[0] - parts[1] + 1), 0)
            return Value(sql=f"CAST({function}({value.sql}) AS {duck_type(kind)})", type=kind)
        if not is_number(value.type):
            raise OnlySparkError(quoted(node))
        return Value(sql=f"CAST({function}({value.sql}) AS BIGINT)", type="bigint")

    return translate


def _of_double(function: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        values = [self.value(node.this), *([self.value(node.expression)] if node.args.get("expression") else [])]
        if any(not is_number(each.type) for each in values):
            raise OnlySparkError(quoted(node))
        return Value(sql=f"{function}({', '.join(typed(each, 'double').sql for each in values)})", type="double")

    return translate


def _logarithm(self: Translator, node: exp.Expr) -> Value:
    """Of a number that has none Spark makes NULL."""
    base, of = (node.this, node.expression) if node.args.get("expression") else (None, node.this)
    value = typed(self.value(of), "double")
    function = "ln" if base is None else {"10": "log10", "2": "log2"}.get(base.name)
    if function is None:
        raise OnlySparkError(quoted(node))
    return Value(sql=f"CASE WHEN {value.sql} > 0 THEN {function}({value.sql}) END", type="double")


def _is_nan(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node.this)
    if value.type not in ("float", "double"):
        raise OnlySparkError(quoted(node))
    return Value(sql=f"coalesce(isnan({value.sql}), false)", type="boolean")


# Text


def _ends(function: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        return Value(sql=f"{function}({text_of(self, node.this).sql}, {whole_number(node.expression)})", type="string")

    return translate


def _padded(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this", "expression", "fill_pattern", "is_left")
    fill = node.args.get("fill_pattern")
    by = literal(" ") if fill is None else text_of(self, fill).sql
    if fill is not None and not fill.name:
        raise OnlySparkError(quoted(node))
    function = "lpad" if node.args.get("is_left") else "rpad"
    sql = f"{function}({text_of(self, node.this).sql}, {whole_number(node.expression)}, {by})"
    return Value(sql=sql, type="string")


def _joined_with(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "expressions", "safe", "coalesce", "flatten")
    values = [typed(self.value(each), "string").sql for each in node.expressions]
    return Value(sql=f"concat_ws({', '.join(values)})", type="string")


def _place_of(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this", "substr")
    one, other = text_of(self, node.this), text_of(self, node.args["substr"])
    return Value(sql=f"CAST(strpos({one.sql}, {other.sql}) AS INTEGER)", type="int")


def _of_text(function: str, *arguments: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        check_arguments(node, "this", *arguments)
        rest = "".join(f", {whole_number(node.args[each])}" for each in arguments)
        return Value(sql=f"{function}({text_of(self, node.this).sql}{rest})", type="string")

    return translate


def _like(self: Translator, node: exp.Expr) -> Value:
    """Without regard to case: of letters whose case is known to both engines."""
    value, pattern = self.value(node.this), node.expression
    if value.type != "string" or not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise OnlySparkError(quoted(node))
    word = "NOT ILIKE" if node.args.get("negate") else "ILIKE"
    return Value(sql=f"({value.sql} {word} {literal(pattern.name)})", type="boolean")


# Days and moments

_SPANS = {"DAY": 1, "WEEK": 7, "MONTH": 1, "QUARTER": 3, "YEAR": 12, "HOUR": 1, "MINUTE": 1, "SECOND": 1}
_IN_MONTHS = ("MONTH", "QUARTER", "YEAR")
_IN_DAYS = ("DAY", "WEEK")


def _moved(self: Translator, node: exp.Expr, sign: str) -> Value:
    """A day or a moment, so much later or earlier."""
    moment, span = (
        (node.this, node.expression) if isinstance(node.expression, exp.Interval) else (node.expression, node.this)
    )
    if isinstance(moment, exp.Interval) or (sign == "-" and span is node.this):
        raise OnlySparkError(quoted(node))
    value = self.value(moment)
    unit = span.args["unit"].name.upper() if span.args.get("unit") is not None else ""
    unit = unit.removesuffix("S")
    count = span.this.name if isinstance(span.this, exp.Literal) else ""
    if value.type not in MOMENTS or unit not in _SPANS or not count.removeprefix("-").isdecimal():
        raise OnlySparkError(quoted(node))
    kept = value.type == "date" and unit in (*_IN_MONTHS, *_IN_DAYS)
    if value.type == "date" and not kept:
        raise OnlySparkError(f"{quoted(node)}: a day has no hours")
    word = "MONTH" if unit in _IN_MONTHS else "DAY" if unit in _IN_DAYS else unit
    sql = f"{value.sql} {sign} INTERVAL {int(count) * _SPANS[unit]} {word}"
    return Value(sql=f"CAST({sql} AS DATE)" if kept else f"({sql})", type=value.type)


def _months_later(self: Translator, node: exp.Expr) -> Value:
    day, count = _as_day(self, node.this), self.value(node.expression)
    if count.type not in INTEGERS:
        raise OnlySparkError(quoted(node))
    return Value(sql=f"CAST({day.sql} + to_months(CAST({count.sql} AS INTEGER)) AS DATE)", type="date")


def _as_day(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node)
    if value.type not in ("string", VOID, *MOMENTS):
        raise OnlySparkError(f"{value.type} as a day: {quoted(node)}")
    return typed(value, "date")


_PARTS_OF_DAY = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "week",
    "DAY": "day",
    "DOY": "dayofyear",
}
_PARTS_OF_TIME = {"HOUR": "hour", "MINUTE": "minute"}


def _extracted(self: Translator, node: exp.Expr) -> Value:
    part = node.this.name.upper()
    value = self.value(node.expression)
    if part in _PARTS_OF_TIME and value.type in ("timestamp", "timestamp_ntz"):
        return Value(sql=f"CAST({_PARTS_OF_TIME[part]}({value.sql}) AS INTEGER)", type="int")
    if part not in _PARTS_OF_DAY:
        raise OnlySparkError(quoted(node))
    return Value(sql=f"CAST({_PARTS_OF_DAY[part]}({_as_day(self, node.expression).sql}) AS INTEGER)", type="int")


def _part_of_day(function: str, added: int = 0) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        check_arguments(node, "this")
        more = f" + {added}" if added else ""
        return Value(sql=f"CAST({function}({_as_day(self, node.this).sql}){more} AS INTEGER)", type="int")

    return translate


def _last_day(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this")
    return Value(sql=f"last_day({_as_day(self, node.this).sql})", type="date")


_WIDTHS = {
    "YEAR": "year",
    "YYYY": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "MM": "month",
    "MON": "month",
    "WEEK": "week",
}
_WIDTHS_OF_TIME = {"DAY": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second"}


def _cut_day(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this", "unit")
    unit = _WIDTHS.get(node.args["unit"].name.upper())
    if unit is None:
        raise OnlySparkError(quoted(node))
    return Value(sql=f"CAST(date_trunc('{unit}', {_as_day(self, node.this).sql}) AS DATE)", type="date")


def _cut_moment(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this", "unit")
    value, unit = self.value(node.this), (_WIDTHS | _WIDTHS_OF_TIME).get(node.args["unit"].name.upper())
    if unit is None or value.type not in MOMENTS:
        raise OnlySparkError(quoted(node))
    moment = typed(value, "timestamp") if value.type == "date" else value
    return Value(sql=f"CAST(date_trunc('{unit}', {moment.sql}) AS TIMESTAMP)", type=moment.type)


# Many rows


def _average(self: Translator, node: exp.Expr, suffix: str) -> Value:
    check_arguments(node, "this")
    value = self.value(node.this)
    if not is_decimal(value.type):
        if not is_number(value.type):
            raise OnlySparkError(f"avg of {value.type}")
        return Value(sql=f"avg({typed(value, 'double').sql}){suffix}", type="double")
    digits, scale = parts_of(value)
    kind = _bounded(digits + 4, scale + 4)
    total = Value(sql=f"sum({value.sql}){suffix}", type=decimal_type(_MOST_DIGITS, scale))
    count = Value(sql=f"CAST(count({value.sql}){suffix} AS DECIMAL(20,0))", type=decimal_type(20, 0))
    made = _exact_quotient(total, (_MOST_DIGITS, scale), count, (20, 0), kind)
    return Value(sql=f"CASE WHEN {count.sql} > 0 THEN {made.sql} END", type=kind)


def _of_many(self: Translator, node: exp.Expr, suffix: str) -> Value:
    """`suffix` is what follows the call: a filter, a window."""
    match node:
        case exp.Avg():
            return _average(self, node, suffix)
        case exp.ArrayAgg():
            return collected(self, node, suffix)
        case exp.Sum() if not isinstance(node.this, exp.Distinct):
            value = self.value(node.this)
            if value.type in ("float", "double"):
                return Value(sql=f"sum({typed(value, 'double').sql}){suffix}", type="double")
            if is_decimal(value.type):
                check_arguments(node, "this")
                digits, scale = parts_of(value)
                kind = decimal_type(min(_MOST_DIGITS, digits + 10), scale)
                return Value(sql=f"CAST(sum({value.sql}){suffix} AS {duck_type(kind)})", type=kind)
        case exp.CountIf():
            check_arguments(node, "this")
            return Value(sql=f"CAST(count_if({self.condition(node.this)}){suffix} AS BIGINT)", type="bigint")
        case exp.LogicalAnd() | exp.LogicalOr():
            check_arguments(node, "this")
            function = "bool_and" if isinstance(node, exp.LogicalAnd) else "bool_or"
            return Value(sql=f"{function}({self.condition(node.this)}){suffix}", type="boolean")
        case exp.ArgMax() | exp.ArgMin():
            check_arguments(node, "this", "expression")
            value, by = self.value(node.this), self.comparable(self.value(node.expression), node.key)
            function = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
            return Value(sql=f"{function}({value.sql}, {by.sql}){suffix}", type=value.type)
    if type(node) in _MOMENTS_OF:
        check_arguments(node, "this")
        value = self.value(node.this)
        if not is_number(value.type):
            raise OnlySparkError(f"{node.key} of {value.type}")
        return Value(sql=f"{_MOMENTS_OF[type(node)]}({typed(value, 'double').sql}){suffix}", type="double")
    return aggregated(self, node, suffix)


_MOMENTS_OF: Mapping[type[exp.Expr], str] = {
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Median: "median",
}


def _aggregate(self: Translator, node: exp.Expr) -> Value:
    return _of_many(self, node, "")


def _filtered(self: Translator, node: exp.Expr) -> Value:
    return _of_many(self, node.this, f" FILTER (WHERE {self.condition(node.expression.this)})")


def _window(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this", "partition_by", "order", "over", "spec")
    parts = [self.comparable(each, "PARTITION BY").sql for each in self.values(node.args.get("partition_by") or [])]
    order = node.args.get("order")
    over = [f"PARTITION BY {', '.join(parts)}"] if parts else []
    over += [f"ORDER BY {', '.join(ordered(self, each) for each in order.expressions)}"] if order is not None else []
    over += [_frame(node.args["spec"])] if node.args.get("spec") is not None else []
    suffix = f" OVER ({' '.join(over)})"
    own = node.this
    if type(own) in _RANKS:
        check_arguments(own, *(("this",) if isinstance(own, exp.Ntile) else ()))
        if order is None:
            raise OnlySparkError(quoted(node))
        function, kind = _RANKS[type(own)]
        given = whole_number(own.this) if isinstance(own, exp.Ntile) else ""
        return Value(sql=f"CAST({function}({given}){suffix} AS {duck_type(kind)})", type=kind)
    if isinstance(own, exp.Lag | exp.Lead):
        return _neighbour(self, own, suffix)
    if isinstance(own, exp.First | exp.Last | exp.FirstValue | exp.LastValue):
        check_arguments(own, "this")
        value = self.value(own.this)
        function = "first_value" if isinstance(own, exp.First | exp.FirstValue) else "last_value"
        return Value(sql=f"{function}({value.sql}){suffix}", type=value.type)
    return _of_many(self, own, suffix)


_RANKS: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.RowNumber: ("row_number", "int"),
    exp.Rank: ("rank", "int"),
    exp.DenseRank: ("dense_rank", "int"),
    exp.Ntile: ("ntile", "int"),
    exp.PercentRank: ("percent_rank", "double"),
    exp.CumeDist: ("cume_dist", "double"),
}


def _neighbour(self: Translator, node: exp.Expr, suffix: str) -> Value:
    check_arguments(node, "this", "offset", "default")
    value = self.value(node.this)
    offset = 1 if node.args.get("offset") is None else whole_number(node.args["offset"])
    default = node.args.get("default")
    rest = "" if default is None else f", {typed(self.value(default), value.type).sql}"
    function = "lag" if isinstance(node, exp.Lag) else "lead"
    return Value(sql=f"{function}({value.sql}, {offset}{rest}){suffix}", type=value.type)


def _frame(node: exp.Expr) -> str:
    check_arguments(node, "kind", "start", "start_side", "end", "end_side")
    kind = str(node.args.get("kind") or "").upper()
    if kind not in _FRAMES:
        raise OnlySparkError(quoted(node))
    start, end = _edge(node, "start"), _edge(node, "end") if node.args.get("end") else "CURRENT ROW"
    return f"{kind} BETWEEN {start} AND {end}"


def _edge(node: exp.Expr, name: str) -> str:
    edge, side = node.args.get(name), str(node.args.get(f"{name}_side") or "").upper()
    if edge == "CURRENT ROW":
        return "CURRENT ROW"
    if side not in ("PRECEDING", "FOLLOWING"):
        raise OnlySparkError(quoted(node))
    return f"{'UNBOUNDED' if edge == 'UNBOUNDED' else whole_number(edge)} {side}"  # type: ignore[arg-type]


def _is_grouped_over(self: Translator, node: exp.Expr) -> Value:
    """1 where a row is made of all values of what is grouped by, else 0."""
    check_arguments(node, "expressions")
    if len(node.expressions) != 1:
        raise OnlySparkError(quoted(node))
    return Value(sql=f"CAST(grouping({self.value(node.expressions[0]).sql}) AS TINYINT)", type="tinyint")


def _grouping(self: Translator, node: exp.Expr) -> Value:
    """Those of all that is grouped by, as bits."""
    check_arguments(node, "expressions")
    listed = self.scope.groupings()
    if not listed or (node.expressions and list(node.expressions) != listed):
        raise OnlySparkError(quoted(node))
    given = ", ".join(each.sql for each in self.values(listed))
    return Value(sql=f"CAST(grouping({given}) AS BIGINT)", type="bigint")


def _to_type(self: Translator, node: exp.Expr) -> Value:
    """Doubles become text, and decimals, as the engine has them."""
    value, wanted = self.value(node.this), node.args["to"]
    sql = wanted.sql(dialect="spark").lower()
    if value.type in ("float", "double") and sql in ("float", "double", "string"):
        return Value(sql=f"CAST({value.sql} AS {duck_type(sql)})", type=sql)
    if is_number(value.type) and sql in ("float", "double"):
        return typed(value, sql)
    if is_decimal(value.type) and sql == "string":
        return Value(sql=f"CAST({value.sql} AS VARCHAR)", type="string")
    if value.type == "double" and sql.startswith("decimal"):
        kind = sql.replace(" ", "")
        return Value(sql=f"CAST({value.sql} AS {duck_type(kind)})", type=kind)
    return cast(value, type_of(wanted))


ASKED: Known = {
    **SCALARS,
    **FUNCTIONS,
    **NESTED,
    exp.Placeholder: _parameter,
    exp.Parameter: _parameter,
    exp.Literal: _number,
    exp.Dot: _field,
    exp.Cast: _to_type,
    exp.TryCast: _to_type,
    exp.Add: _sum_of("+"),
    exp.Sub: _sum_of("-"),
    exp.Mul: _product,
    exp.Div: _quotient,
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.Round: _rounded,
    exp.Ceil: _whole("ceil"),
    exp.Floor: _whole("floor"),
    exp.Sqrt: _of_double("sqrt"),
    exp.Exp: _of_double("exp"),
    exp.Pow: _of_double("power"),
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.Sign: _of_double("sign"),
    exp.IsNan: _is_nan,
    exp.ILike: _like,
    exp.Left: _ends("left"),
    exp.Right: _ends("right"),
    exp.Pad: _padded,
    exp.ConcatWs: _joined_with,
    exp.StrPosition: _place_of,
    exp.Reverse: _of_text("reverse"),
    exp.Repeat: _of_text("repeat", "times"),
    exp.Extract: _extracted,
    exp.AddMonths: _months_later,
    exp.Quarter: _part_of_day("quarter"),
    exp.WeekOfYear: _part_of_day("weekofyear"),
    exp.DayOfYear: _part_of_day("dayofyear"),
    exp.DayOfWeek: _part_of_day("dayofweek", 1),
    exp.LastDay: _last_day,
    exp.DateTrunc: _cut_day,
    exp.TimestampTrunc: _cut_moment,
    **dict.fromkeys(
        (
            exp.Count,
            exp.Sum,
            exp.Min,
            exp.Max,
            exp.Avg,
            exp.CountIf,
            exp.LogicalAnd,
            exp.LogicalOr,
            exp.ArgMax,
            exp.ArgMin,
            exp.ArrayAgg,
            *_MOMENTS_OF,
        ),
        _aggregate,
    ),
    exp.Filter: _filtered,
    exp.Window: _window,
    exp.Grouping: _is_grouped_over,
    exp.GroupingId: _grouping,
}
"""All that is translated of what people ask."""

ARGUMENTS: Mapping[type[exp.Expr], tuple[str, ...]] = {
    **ARGUMENTS_OF_TRANSFORMS,
    **NESTED_ARGUMENTS,
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Pad: ("this", "expression", "fill_pattern", "is_left"),
    exp.ConcatWs: ("expressions", "safe", "coalesce", "flatten"),
    exp.StrPosition: ("this", "substr"),
    exp.Repeat: ("this", "times"),
    exp.Grouping: ("expressions",),
    exp.GroupingId: ("expressions",),
    exp.DateTrunc: ("this", "unit"),
    exp.TimestampTrunc: ("this", "unit"),
    exp.Window: ("this", "partition_by", "order", "over", "spec"),
}
