"""Pure. Functions of Spark SQL as DuckDB's: of text, days, many rows."""

from collections.abc import Mapping

from sqlglot import exp

from lakelib.errors import OnlySparkError
from lakelib.plan.local_translator import (
    MOMENTS,
    Known,
    Translate,
    Translator,
    check_arguments,
    parts_of,
    text_of,
    whole_number,
)
from lakelib.plan.local_types import (
    INTEGERS,
    UNLIKE,
    VOID,
    Value,
    decimal_type,
    duck_type,
    failing,
    is_decimal,
    literal,
    typed,
)
from lakelib.plan.sqltext import quoted

_YOUNG_LETTERS = r"\x{A7C0}-\x{A7FF}\x{10D40}-\x{10D8F}\x{16EA0}-\x{16EDF}"
"""Of which one of the engines does not know the case yet."""
_UNLIKE_LOWER = rf"[\x{{130}}\x{{3A3}}\x{{1C89}}{_YOUNG_LETTERS}]"
_UNLIKE_UPPER = (
    r"[\x{DF}\x{149}\x{19B}\x{1F0}\x{264}\x{390}\x{3B0}\x{587}\x{1C8A}\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFF}"
    rf"\x{{FB00}}-\x{{FB17}}{_YOUNG_LETTERS}]"
)
"""Letters that one engine turns into another letter than the other does, or into several, or by what stands beside."""


# Text


def _cased(function: str, unlike: str) -> Translate:
    """Letters of which DuckDB makes another letter, or another number of them, are for Spark."""
    refused = failing(UNLIKE, f"{function} of letters whose case is not one letter for one")

    def translate(self: Translator, node: exp.Expr) -> Value:
        value = text_of(self, node.this)
        is_unlike = f"regexp_matches({value.sql}, {literal(unlike)})"
        return Value(sql=f"CASE WHEN {is_unlike} THEN {refused} ELSE {function}({value.sql}) END", type="string")

    return translate


def _trimmed(self: Translator, node: exp.Expr) -> Value:
    """Spark trims blanks, and no other white space."""
    function = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[
        str(node.args.get("position") or "").upper()
    ]
    return Value(sql=f"{function}({text_of(self, node.this).sql}, ' ')", type="string")


def _length(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this")
    return Value(sql=f"CAST(length({text_of(self, node.this).sql}) AS INTEGER)", type="int")


def _substring(self: Translator, node: exp.Expr) -> Value:
    """From a place that is counted from the beginning: before it, and from the end, the engines differ."""
    start, length = whole_number(node.args["start"]), node.args.get("length")
    if start < 1:
        raise OnlySparkError(quoted(node))
    rest = "" if length is None else f", {whole_number(length)}"
    return Value(sql=f"substring({text_of(self, node.this).sql}, {start}{rest})", type="string")


def _joined(self: Translator, node: exp.Expr) -> Value:
    """NULL if one is NULL; days and whole numbers become text."""
    parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    values = [typed(self.value(part), "string") for part in parts]
    return Value(sql=f"CAST({' || '.join(value.sql for value in values)} AS VARCHAR)", type="string")


def _replaced(self: Translator, node: exp.Expr) -> Value:
    sought, replacement = node.expression, node.args.get("replacement")
    if not (isinstance(sought, exp.Literal) and sought.is_string and sought.name) or replacement is None:
        raise OnlySparkError(quoted(node))
    by = text_of(self, replacement).sql
    return Value(sql=f"replace({text_of(self, node.this).sql}, {literal(sought.name)}, {by})", type="string")


# Days and moments


def _day(self: Translator, node: exp.Expr) -> Value:
    return _as_day(self, node.this)


def _as_day(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node)
    if value.type not in ("string", VOID, *MOMENTS):
        raise OnlySparkError(f"{value.type} as a day: {quoted(node)}")
    return typed(value, "date")


def _later_day(self: Translator, node: exp.Expr) -> Value:
    day, unit, count = _as_day(self, node.this), node.args.get("unit"), self.value(node.expression)
    if (unit is not None and unit.name != "DAY") or count.type not in ("tinyint", "smallint", "int"):
        raise OnlySparkError(quoted(node))
    return Value(sql=f"({day.sql} + {typed(count, 'int').sql})", type="date")


def _days_between(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this", "expression")
    later, earlier = _as_day(self, node.this), _as_day(self, node.expression)
    return Value(sql=f"CAST({later.sql} - {earlier.sql} AS INTEGER)", type="int")


def _part_of_day(function: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        check_arguments(node, "this")
        return Value(sql=f"CAST({function}({_as_day(self, node.this).sql}) AS INTEGER)", type="int")

    return translate


def _part_of_time(function: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        check_arguments(node, "this")
        value = self.value(node.this)
        if value.type not in ("timestamp", "timestamp_ntz"):
            raise OnlySparkError(f"{function} of {value.type}")
        return Value(sql=f"CAST({function}({value.sql}) AS INTEGER)", type="int")

    return translate


# Aggregates and windows


def _aggregate(self: Translator, node: exp.Expr) -> Value:
    return aggregated(self, node, "")


def _filtered(self: Translator, node: exp.Expr) -> Value:
    return aggregated(self, node.this, f" FILTER (WHERE {self.condition(node.expression.this)})")


def aggregated(self: Translator, node: exp.Expr, suffix: str) -> Value:
    """`suffix` is what follows the call."""
    if isinstance(node, exp.Count):
        return Value(sql=f"{_counted(self, node)}{suffix}", type="bigint")
    check_arguments(node, "this")
    value = self.value(node.this)
    match node:
        case exp.Min() | exp.Max():
            self.comparable(value, node.key)
            return Value(sql=f"{node.key}({typed(value, self.kept([value], node.key)).sql}){suffix}", type=value.type)
        case exp.Sum() if value.type in INTEGERS:
            return Value(sql=f"CAST(sum({value.sql}){suffix} AS BIGINT)", type="bigint")
        case exp.Sum() if is_decimal(value.type):
            digits, scale = parts_of(value)
            kind = decimal_type(digits + 10, scale)
            return Value(sql=f"CAST(sum({value.sql}){suffix} AS {duck_type(kind)})", type=kind)
        case _:
            raise OnlySparkError(f"{node.key} of {value.type}")


def _counted(self: Translator, node: exp.Expr) -> str:
    check_arguments(node, "this", "big_int")
    what = node.this
    if isinstance(what, exp.Star):
        return "count(*)"
    if isinstance(what, exp.Distinct):
        check_arguments(what, "expressions")
        if len(what.expressions) != 1:
            raise OnlySparkError(quoted(node))
        return f"count(DISTINCT {self.comparable(self.value(what.expressions[0]), 'count(DISTINCT …)').sql})"
    return f"count({self.value(what).sql})"


def _window(self: Translator, node: exp.Expr) -> Value:
    """Over all rows of a part, or up to the row and its equals: frames of other kinds are for Spark."""
    parts = [self.comparable(value, "PARTITION BY").sql for value in self.values(node.args.get("partition_by") or [])]
    order = node.args.get("order")
    over = [f"PARTITION BY {', '.join(parts)}"] if parts else []
    over += [f"ORDER BY {', '.join(ordered(self, each) for each in order.expressions)}"] if order is not None else []
    suffix = f" OVER ({' '.join(over)})"
    if type(node.this) in _RANKS:
        check_arguments(node.this)
        if order is None:
            raise OnlySparkError(quoted(node))
        return Value(sql=f"CAST({_RANKS[type(node.this)]}(){suffix} AS INTEGER)", type="int")
    return aggregated(self, node.this, suffix)


def ordered(self: Translator, node: exp.Expr, value: Value | None = None) -> str:
    """A term of ORDER BY, with the place of NULLs that Spark gives them."""
    check_arguments(node, "this", "desc", "nulls_first")
    value = self.value(node.this) if value is None else value
    if self.comparable(value, "ORDER BY").type == VOID:
        raise OnlySparkError(quoted(node))
    way = "DESC" if node.args.get("desc") else "ASC"
    return f"{value.sql} {way} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


_RANKS: Mapping[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
}

FUNCTIONS: Known = {
    exp.Lower: _cased("lower", _UNLIKE_LOWER),
    exp.Upper: _cased("upper", _UNLIKE_UPPER),
    exp.Trim: _trimmed,
    exp.Length: _length,
    exp.Substring: _substring,
    exp.Concat: _joined,
    exp.DPipe: _joined,
    exp.Replace: _replaced,
    exp.TsOrDsToDate: _day,
    exp.TsOrDsAdd: _later_day,
    exp.DateDiff: _days_between,
    exp.Year: _part_of_day("year"),
    exp.Month: _part_of_day("month"),
    exp.Day: _part_of_day("day"),
    exp.DayOfMonth: _part_of_day("day"),
    exp.Hour: _part_of_time("hour"),
    exp.Minute: _part_of_time("minute"),
    exp.Second: _part_of_time("second"),
    exp.Count: _aggregate,
    exp.Sum: _aggregate,
    exp.Min: _aggregate,
    exp.Max: _aggregate,
    exp.Filter: _filtered,
    exp.Window: _window,
}
