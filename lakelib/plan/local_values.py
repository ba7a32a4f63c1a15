"""Pure. Expressions of Spark SQL become DuckDB's, with the types that Spark gives them.

Only what is listed here is translated, and each of it was tried against Spark, value by value. All else takes Spark.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from lakelib.errors import OnlySparkError
from lakelib.plan.local_types import (
    INTEGERS,
    UNLIKE,
    VOID,
    WRONG,
    Value,
    all_typed,
    cast,
    common_type,
    decimal_parts,
    decimal_type,
    duck_type,
    failing,
    is_decimal,
    literal,
    typed,
)
from lakelib.plan.sqltext import quoted

COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MOMENTS = ("date", "timestamp", "timestamp_ntz")
_SIMPLE = ("boolean", *INTEGERS, "string", "binary", *_MOMENTS)
"""Types, besides decimals, whose values are equal or not, and in one order, in both engines: doubles have two zeros."""
_LARGEST_INT, _LARGEST_BIGINT = 2**31 - 1, 2**63 - 1
_TYPE_NAMES = {
    exp.DType.BOOLEAN: "boolean",
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.DOUBLE: "double",
    exp.DType.TEXT: "string",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
}
_YOUNG_LETTERS = r"\x{A7C0}-\x{A7FF}\x{10D40}-\x{10D8F}\x{16EA0}-\x{16EDF}"
"""Of which one of the engines does not know the case yet."""
_UNLIKE_LOWER = rf"[\x{{130}}\x{{3A3}}\x{{1C89}}{_YOUNG_LETTERS}]"
_UNLIKE_UPPER = (
    r"[\x{DF}\x{149}\x{19B}\x{1F0}\x{264}\x{390}\x{3B0}\x{587}\x{1C8A}\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFF}"
    rf"\x{{FB00}}-\x{{FB17}}{_YOUNG_LETTERS}]"
)
"""Letters that one engine turns into another letter than the other does, or into several, or by what stands beside."""


class Scope(Protocol):
    """What names and inner queries mean where an expression stands."""

    def column(self, node: exp.Column) -> Value: ...
    def query(self, node: exp.Expr) -> tuple[str, tuple[str, ...]]:
        """An inner query's text, and the types of its columns."""

    def is_conjunct(self, node: exp.Expr) -> bool:
        """Whether rows are left out alike for which it is false and for which it is NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    scope: Scope
    partition: str
    """What `:partition` stands for."""

    def value(self, node: exp.Expr) -> Value:
        """Raises OnlySparkError for what is not translated."""
        translate = TRANSLATED.get(type(node))
        if translate is None:
            raise OnlySparkError(quoted(node))
        check_arguments(node, *_ARGUMENTS.get(type(node), ("this", "expression")))
        return translate(self, node)

    def values(self, nodes: Sequence[exp.Expr]) -> list[Value]:
        return [self.value(node) for node in nodes]

    def condition(self, node: exp.Expr) -> str:
        """What has to be a boolean."""
        value = self.value(node)
        if value.type not in ("boolean", VOID):
            raise OnlySparkError(f"a condition that is {value.type}: {quoted(node)}")
        return typed(value, "boolean").sql


def check_arguments(node: exp.Expr, *known: str) -> None:
    """Raises OnlySparkError for anything about a node that is not one of these."""
    further = [name for name, given in node.args.items() if given and name not in known]
    if further:
        raise OnlySparkError(quoted(node))


def check_comparable(value: Value, what: str) -> Value:
    if value.type in (*_SIMPLE, VOID) or is_decimal(value.type):
        return value
    raise OnlySparkError(f"{what} of type {value.type}")


# Literals and names


def _column(self: Translator, node: exp.Expr) -> Value:
    assert isinstance(node, exp.Column)
    return self.scope.column(node)


def _literal(self: Translator, node: exp.Expr) -> Value:
    assert isinstance(node, exp.Literal)
    text = str(node.this)
    if node.is_string:
        return Value(sql=literal(text), type="string")
    if text.isascii() and text.isdecimal() and int(text) <= _LARGEST_BIGINT:
        kind = "int" if int(text) <= _LARGEST_INT else "bigint"
        digits = len(text.lstrip("0")) or 1
        return Value(sql=f"CAST({int(text)} AS {duck_type(kind)})", type=kind, digits=digits)
    whole, dot, fraction = text.partition(".")
    if dot and (whole + fraction).isascii() and (whole + fraction).isdecimal():
        kind = decimal_type(max(len(whole.lstrip("0")) + len(fraction), 1), len(fraction))
        return Value(sql=f"CAST({literal(text)} AS {duck_type(kind)})", type=kind)
    raise OnlySparkError(f"the number {text}")


def _boolean(self: Translator, node: exp.Expr) -> Value:
    return Value(sql="true" if node.this else "false", type="boolean")


def _null(self: Translator, node: exp.Expr) -> Value:
    return Value(sql="NULL", type=VOID)


def _placeholder(self: Translator, node: exp.Expr) -> Value:
    if node.this != "partition":
        raise OnlySparkError(f"the parameter {quoted(node)}")
    return Value(sql=literal(self.partition), type="string")


def _paren(self: Translator, node: exp.Expr) -> Value:
    return self.value(node.this)


def _cast(self: Translator, node: exp.Expr) -> Value:
    """sqlglot has Spark's `cast` as TryCast, and `try_cast` as one that is safe."""
    return cast(self.value(node.this), _type_of(node.args["to"]))


def _type_of(node: exp.Expr) -> str:
    kind = _TYPE_NAMES.get(node.this)
    if kind is not None and not node.expressions:
        return kind
    if node.this is exp.DType.DECIMAL:
        given = [int(each.name) for each in node.expressions]
        precision, scale = (*given, *(10, 0)[len(given) :])
        if precision > 0 and scale <= precision:
            return decimal_type(precision, scale)
    raise OnlySparkError(f"the type {quoted(node)}")


# Arithmetic


def _negative(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node.this)
    if value.type == "double" or value.type in INTEGERS or is_decimal(value.type):
        return Value(sql=f"(-{value.sql})", type=value.type, digits=value.digits)
    raise OnlySparkError(quoted(node))


def _sum_of(sign: str) -> Callable[[Translator, exp.Expr], Value]:
    def translate(self: Translator, node: exp.Expr) -> Value:
        one, other, kind = _numbers(self, node)
        if not is_decimal(kind):
            one, other = typed(one, kind), typed(other, kind)
            return Value(sql=f"({one.sql} {sign} {other.sql})", type=kind)
        (digits, scale), (more_digits, more_scale) = _parts(one), _parts(other)
        wider = max(scale, more_scale)
        kind = decimal_type(max(digits - scale, more_digits - more_scale) + wider + 1, wider)
        one, other = typed(one, kind), typed(other, kind)
        return Value(sql=f"CAST({one.sql} {sign} {other.sql} AS {duck_type(kind)})", type=kind)

    return translate


def _product(self: Translator, node: exp.Expr) -> Value:
    one, other, kind = _numbers(self, node)
    if not is_decimal(kind):
        return Value(sql=f"({typed(one, kind).sql} * {typed(other, kind).sql})", type=kind)
    (digits, scale), (more_digits, more_scale) = _parts(one), _parts(other)
    kind = decimal_type(digits + more_digits + 1, scale + more_scale)
    # DuckDB multiplies small decimals as such, and they overflow.
    wide = typed(one, decimal_type(digits + more_digits + 1, scale))
    small = typed(other, decimal_type(more_digits, more_scale))
    return Value(sql=f"CAST({wide.sql} * {small.sql} AS {duck_type(kind)})", type=kind)


def _quotient(self: Translator, node: exp.Expr) -> Value:
    """Of doubles and whole numbers: Spark divides those as doubles, too."""
    one, other = self.value(node.this), self.value(node.expression)
    if any(each.type not in ("double", *INTEGERS) for each in (one, other)):
        raise OnlySparkError(f"a division of {one.type} by {other.type}")
    return _divided(typed(one, "double"), "/", typed(other, "double"), "double")


def _whole_quotient(self: Translator, node: exp.Expr) -> Value:
    one, other = self.value(node.this), self.value(node.expression)
    if any(each.type not in INTEGERS for each in (one, other)):
        raise OnlySparkError(quoted(node))
    return _divided(typed(one, "bigint"), "//", typed(other, "bigint"), "bigint")


def _remainder(self: Translator, node: exp.Expr) -> Value:
    one, other, kind = _numbers(self, node)
    if kind not in INTEGERS:
        raise OnlySparkError(quoted(node))
    return _divided(typed(one, kind), "%", typed(other, kind), kind)


def _divided(one: Value, sign: str, other: Value, kind: str) -> Value:
    """Of NULL and zero Spark makes NULL."""
    wrong = failing(WRONG, "a division by zero")
    is_wrong = f"{other.sql} = 0 AND {one.sql} IS NOT NULL"
    return Value(sql=f"CASE WHEN {is_wrong} THEN {wrong} ELSE {one.sql} {sign} {other.sql} END", type=kind)


def _numbers(self: Translator, node: exp.Expr) -> tuple[Value, Value, str]:
    """Both sides, and the type that they have together."""
    one, other = self.value(node.this), self.value(node.expression)
    kind = common_type((one, other), "arithmetic", by_digits=True)
    if kind == "double" or kind in INTEGERS or is_decimal(kind):
        return _known(one, kind), _known(other, kind), kind
    raise OnlySparkError(f"arithmetic with {one.type} and {other.type}")


def _known(value: Value, kind: str) -> Value:
    return typed(value, kind) if value.type == VOID else value


def _parts(value: Value) -> tuple[int, int]:
    found = decimal_parts(value)
    assert found is not None
    return found


def _absolute(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node.this)
    if value.type in INTEGERS or is_decimal(value.type):
        return Value(sql=f"abs({value.sql})", type=value.type)
    raise OnlySparkError(f"abs of {value.type}")


def _rounded(self: Translator, node: exp.Expr) -> Value:
    value, places = self.value(node.this), node.args.get("decimals")
    found = decimal_parts(value) if is_decimal(value.type) else None
    wanted = 0 if places is None else _whole_number(places)
    if found is None:
        raise OnlySparkError(f"round of {value.type}")
    scale = min(found[1], wanted)
    return cast(value, decimal_type(found[0] - found[1] + 1 + scale, scale))


# Conditions


def _compared(self: Translator, node: exp.Expr) -> Value:
    values = self.value(node.this), self.value(node.expression)
    is_bound = isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE) and not _are_columns(node.this, node.expression)
    one, other = _alike(*values, with_doubles=is_bound)
    return Value(sql=f"({one.sql} {COMPARISONS[type(node)]} {other.sql})", type="boolean")


def _same(self: Translator, node: exp.Expr) -> Value:
    one, other = _alike(self.value(node.this), self.value(node.expression))
    return Value(sql=f"({one.sql} IS NOT DISTINCT FROM {other.sql})", type="boolean")


def _are_columns(*nodes: exp.Expr) -> bool:
    return all(node.find(exp.Column) is not None for node in nodes)


def _alike(one: Value, other: Value, *, with_doubles: bool = False) -> tuple[Value, Value]:
    """Both in one type. Texts that are compared with days and moments are cast; those beside numbers are for Spark.
    So are doubles that are compared with each other: DuckDB may take one zero for the other where it joins by them."""
    kinds = {one.type, other.type}
    if "string" in kinds and len(kinds) == 2 and kinds & {*_MOMENTS}:
        kind = (kinds - {"string"}).pop()
    else:
        kind = common_type((one, other), "a comparison", by_digits=True)
    is_known = kind in (*_SIMPLE, VOID) or is_decimal(kind) or (with_doubles and kind == "double")
    if not is_known:
        raise OnlySparkError(f"a comparison of {kind}")
    if kind == VOID:
        kind = "boolean"
    return typed(one, kind), typed(other, kind)


def _both(word: str) -> Callable[[Translator, exp.Expr], Value]:
    def translate(self: Translator, node: exp.Expr) -> Value:
        sql = f"({self.condition(node.this)} {word} {self.condition(node.expression)})"
        return Value(sql=sql, type="boolean")

    return translate


def _not(self: Translator, node: exp.Expr) -> Value:
    return Value(sql=f"(NOT {self.condition(node.this)})", type="boolean")


def _is(self: Translator, node: exp.Expr) -> Value:
    wanted = node.expression
    if isinstance(wanted, exp.Null):
        return Value(sql=f"({self.value(node.this).sql} IS NULL)", type="boolean")
    if isinstance(wanted, exp.Boolean):
        sql = f"({self.condition(node.this)} IS {'TRUE' if wanted.this else 'FALSE'})"
        return Value(sql=sql, type="boolean")
    raise OnlySparkError(quoted(node))


def _between(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node.this)
    is_bound = not _are_columns(node.this, node.args["low"]) and not _are_columns(node.this, node.args["high"])
    low, at_least = _alike(value, self.value(node.args["low"]), with_doubles=is_bound)
    high, at_most = _alike(value, self.value(node.args["high"]), with_doubles=is_bound)
    return Value(sql=f"({low.sql} >= {at_least.sql} AND {high.sql} <= {at_most.sql})", type="boolean")


def _in(self: Translator, node: exp.Expr) -> Value:
    """Spark brings all values to one type."""
    value = self.value(node.this)
    if node.args.get("query") is not None:
        if not self.scope.is_conjunct(node):
            raise OnlySparkError(f"{quoted(node)} other than in WHERE, for a NULL")
        return _in_query(self, value, node.args["query"])
    given = self.values(node.expressions)
    if value.type in _MOMENTS and {each.type for each in given} <= {"string", VOID, value.type}:
        given = [typed(each, value.type) for each in given]
    kind = common_type((value, *given), "a comparison")
    if check_comparable(Value(sql="", type=kind), "IN with values").type == VOID:
        raise OnlySparkError(quoted(node))
    listed = ", ".join(all_typed(given, kind))
    return Value(sql=f"({typed(value, kind).sql} IN ({listed}))", type="boolean")


def _in_query(self: Translator, value: Value, node: exp.Expr) -> Value:
    sql, kinds = self.scope.query(node)
    if kinds != (value.type,):
        raise OnlySparkError(f"IN with a query, of {value.type} and {', '.join(kinds)}")
    check_comparable(value, "IN with a query,")
    return Value(sql=f"({value.sql} IN ({sql}))", type="boolean")


def _exists(self: Translator, node: exp.Expr) -> Value:
    sql, _ = self.scope.query(node.this)
    return Value(sql=f"EXISTS ({sql})", type="boolean")


def _single(self: Translator, node: exp.Expr) -> Value:
    """A query in place of a value: more than one row is an error in both."""
    sql, kinds = self.scope.query(node)
    if len(kinds) != 1:
        raise OnlySparkError(f"a query of {len(kinds)} columns as a value")
    return Value(sql=f"({sql})", type=kinds[0])


def _like(self: Translator, node: exp.Expr) -> Value:
    value, pattern = self.value(node.this), node.expression
    if value.type != "string" or not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise OnlySparkError(quoted(node))
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return Value(sql=f"({value.sql} {word} {literal(pattern.name)})", type="boolean")


def _found_in(function: str) -> Callable[[Translator, exp.Expr], Value]:
    def translate(self: Translator, node: exp.Expr) -> Value:
        one, other = _text(self, node.this), _text(self, node.expression)
        return Value(sql=f"{function}({one.sql}, {other.sql})", type="boolean")

    return translate


# One of several values


def _case(self: Translator, node: exp.Expr) -> Value:
    compared = node.this and self.value(node.this)
    branches = [(_branch(self, compared, each.this), self.value(each.args["true"])) for each in node.args["ifs"]]
    default = self.value(node.args["default"]) if node.args.get("default") is not None else None
    return _chosen(branches, default)


def _branch(self: Translator, compared: Value | None, node: exp.Expr) -> str:
    if compared is None:
        return self.condition(node)
    one, other = _alike(compared, self.value(node))
    return f"({one.sql} = {other.sql})"


def _if(self: Translator, node: exp.Expr) -> Value:
    default = self.value(node.args["false"]) if node.args.get("false") is not None else None
    return _chosen([(self.condition(node.this), self.value(node.args["true"]))], default)


def _chosen(branches: Sequence[tuple[str, Value]], default: Value | None) -> Value:
    values = [value for _, value in branches] + ([] if default is None else [default])
    kind = _kept_type(values, "CASE")
    whens = " ".join(f"WHEN {condition} THEN {typed(value, kind).sql}" for condition, value in branches)
    rest = f" ELSE {typed(default, kind).sql}" if default is not None else ""
    return Value(sql=f"CASE {whens}{rest} END", type=kind)


def _coalesce(self: Translator, node: exp.Expr) -> Value:
    values = self.values([node.this, *node.expressions])
    kind = _kept_type(values, "coalesce")
    return Value(sql=f"coalesce({', '.join(all_typed(values, kind))})", type=kind)


def _kept_type(values: Sequence[Value], what: str) -> str:
    kind = common_type(values, what)
    if kind == VOID:
        raise OnlySparkError(f"{what} of nothing but NULL")
    duck_type(kind)
    return kind


def _nullif(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node.this)
    one, other = _alike(value, self.value(node.expression))
    return Value(sql=f"CASE WHEN {one.sql} = {other.sql} THEN NULL ELSE {value.sql} END", type=value.type)


def _extreme(function: str) -> Callable[[Translator, exp.Expr], Value]:
    def translate(self: Translator, node: exp.Expr) -> Value:
        values = self.values([node.this, *node.expressions])
        kind = _kept_type([check_comparable(each, function) for each in values], function)
        return Value(sql=f"{function}({', '.join(all_typed(values, kind))})", type=kind)

    return translate


# Text


def _text(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node)
    if value.type not in ("string", VOID):
        raise OnlySparkError(f"{value.type} as text: {quoted(node)}")
    return typed(value, "string")


def _cased(function: str, unlike: str) -> Callable[[Translator, exp.Expr], Value]:
    """Letters of which DuckDB makes another letter, or another number of them, are for Spark."""
    refused = failing(UNLIKE, f"{function} of letters whose case is not one letter for one")

    def translate(self: Translator, node: exp.Expr) -> Value:
        value = _text(self, node.this)
        is_unlike = f"regexp_matches({value.sql}, {literal(unlike)})"
        return Value(sql=f"CASE WHEN {is_unlike} THEN {refused} ELSE {function}({value.sql}) END", type="string")

    return translate


def _trimmed(self: Translator, node: exp.Expr) -> Value:
    """Spark trims blanks, and no other white space."""
    function = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[
        str(node.args.get("position") or "").upper()
    ]
    return Value(sql=f"{function}({_text(self, node.this).sql}, ' ')", type="string")


def _length(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this")
    return Value(sql=f"CAST(length({_text(self, node.this).sql}) AS INTEGER)", type="int")


def _substring(self: Translator, node: exp.Expr) -> Value:
    """From a place that is counted from the beginning: before it, and from the end, the engines differ."""
    start, length = _whole_number(node.args["start"]), node.args.get("length")
    if start < 1:
        raise OnlySparkError(quoted(node))
    rest = "" if length is None else f", {_whole_number(length)}"
    return Value(sql=f"substring({_text(self, node.this).sql}, {start}{rest})", type="string")


def _whole_number(node: exp.Expr) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        found = int(node.this)
        if found <= _LARGEST_INT:
            return found
    raise OnlySparkError(f"{quoted(node)} where a number has to stand")


def _joined(self: Translator, node: exp.Expr) -> Value:
    """NULL if one is NULL; days and whole numbers become text."""
    parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
    values = [typed(self.value(part), "string") for part in parts]
    return Value(sql=f"CAST({' || '.join(value.sql for value in values)} AS VARCHAR)", type="string")


def _replaced(self: Translator, node: exp.Expr) -> Value:
    sought, replacement = node.expression, node.args.get("replacement")
    if not (isinstance(sought, exp.Literal) and sought.is_string and sought.name) or replacement is None:
        raise OnlySparkError(quoted(node))
    by = _text(self, replacement).sql
    return Value(sql=f"replace({_text(self, node.this).sql}, {literal(sought.name)}, {by})", type="string")


# Days and moments


def _day(self: Translator, node: exp.Expr) -> Value:
    return _as_day(self, node.this)


def _as_day(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node)
    if value.type not in ("string", VOID, *_MOMENTS):
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


def _part_of_day(function: str) -> Callable[[Translator, exp.Expr], Value]:
    def translate(self: Translator, node: exp.Expr) -> Value:
        check_arguments(node, "this")
        return Value(sql=f"CAST({function}({_as_day(self, node.this).sql}) AS INTEGER)", type="int")

    return translate


def _part_of_time(function: str) -> Callable[[Translator, exp.Expr], Value]:
    def translate(self: Translator, node: exp.Expr) -> Value:
        check_arguments(node, "this")
        value = self.value(node.this)
        if value.type not in ("timestamp", "timestamp_ntz"):
            raise OnlySparkError(f"{function} of {value.type}")
        return Value(sql=f"CAST({function}({value.sql}) AS INTEGER)", type="int")

    return translate


# Aggregates and windows


def _aggregate(self: Translator, node: exp.Expr) -> Value:
    return _aggregated(self, node, "")


def _filtered(self: Translator, node: exp.Expr) -> Value:
    return _aggregated(self, node.this, f" FILTER (WHERE {self.condition(node.expression.this)})")


def _aggregated(self: Translator, node: exp.Expr, suffix: str) -> Value:
    """`suffix` is what follows the call."""
    if isinstance(node, exp.Count):
        return Value(sql=f"{_counted(self, node)}{suffix}", type="bigint")
    check_arguments(node, "this")
    value = self.value(node.this)
    match node:
        case exp.Min() | exp.Max():
            check_comparable(value, node.key)
            return Value(sql=f"{node.key}({typed(value, _kept_type([value], node.key)).sql}){suffix}", type=value.type)
        case exp.Sum() if value.type in INTEGERS:
            return Value(sql=f"CAST(sum({value.sql}){suffix} AS BIGINT)", type="bigint")
        case exp.Sum() if is_decimal(value.type):
            digits, scale = _parts(value)
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
        return f"count(DISTINCT {check_comparable(self.value(what.expressions[0]), 'count(DISTINCT …)').sql})"
    return f"count({self.value(what).sql})"


def _window(self: Translator, node: exp.Expr) -> Value:
    """Over all rows of a part, or up to the row and its equals: frames of other kinds are for Spark."""
    parts = [check_comparable(value, "PARTITION BY").sql for value in self.values(node.args.get("partition_by") or [])]
    order = node.args.get("order")
    over = [f"PARTITION BY {', '.join(parts)}"] if parts else []
    over += [f"ORDER BY {', '.join(ordered(self, each) for each in order.expressions)}"] if order is not None else []
    suffix = f" OVER ({' '.join(over)})"
    if type(node.this) in _RANKS:
        check_arguments(node.this)
        if order is None:
            raise OnlySparkError(quoted(node))
        return Value(sql=f"CAST({_RANKS[type(node.this)]}(){suffix} AS INTEGER)", type="int")
    return _aggregated(self, node.this, suffix)


def ordered(self: Translator, node: exp.Expr, value: Value | None = None) -> str:
    """A term of ORDER BY, with the place of NULLs that Spark gives them."""
    check_arguments(node, "this", "desc", "nulls_first")
    value = self.value(node.this) if value is None else value
    if check_comparable(value, "ORDER BY").type == VOID:
        raise OnlySparkError(quoted(node))
    way = "DESC" if node.args.get("desc") else "ASC"
    return f"{value.sql} {way} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


_ARGUMENTS: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.Column: ("this", "table"),
    exp.Literal: ("this", "is_string"),
    exp.Null: (),
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to"),
    exp.Div: ("this", "expression", "typed", "safe"),
    exp.Round: ("this", "decimals"),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions", "query"),
    exp.Like: ("this", "expression", "negate"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Coalesce: ("this", "expressions"),
    exp.Greatest: ("this", "expressions", "ignore_nulls"),
    exp.Least: ("this", "expressions", "ignore_nulls"),
    exp.Trim: ("this", "position"),
    exp.Substring: ("this", "start", "length"),
    exp.Concat: ("expressions", "safe", "coalesce"),
    exp.DPipe: ("this", "expression", "safe"),
    exp.Replace: ("this", "expression", "replacement"),
    exp.TsOrDsToDate: ("this", "safe"),
    exp.TsOrDsAdd: ("this", "expression", "unit"),
    exp.Count: ("this", "big_int"),
    exp.Window: ("this", "partition_by", "order", "over"),
}
"""All that may be said about a node, where it is more than what stands on its two sides."""

_RANKS: Mapping[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
}

TRANSLATED: Mapping[type[exp.Expr], Callable[[Translator, exp.Expr], Value]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Placeholder: _placeholder,
    exp.Paren: _paren,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Neg: _negative,
    exp.Add: _sum_of("+"),
    exp.Sub: _sum_of("-"),
    exp.Mul: _product,
    exp.Div: _quotient,
    exp.IntDiv: _whole_quotient,
    exp.Mod: _remainder,
    exp.Abs: _absolute,
    exp.Round: _rounded,
    **dict.fromkeys(COMPARISONS, _compared),
    exp.NullSafeEQ: _same,
    exp.And: _both("AND"),
    exp.Or: _both("OR"),
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Exists: _exists,
    exp.Subquery: _single,
    exp.Like: _like,
    exp.StartsWith: _found_in("starts_with"),
    exp.EndsWith: _found_in("ends_with"),
    exp.Contains: _found_in("contains"),
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Greatest: _extreme("greatest"),
    exp.Least: _extreme("least"),
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
"""All that is translated."""
