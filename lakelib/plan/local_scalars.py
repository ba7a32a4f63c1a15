"""Pure. Literals, arithmetic, conditions and choices of Spark SQL as DuckDB's."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from lakelib.errors import OnlySparkError
from lakelib.plan.local_translator import (
    LARGEST_BIGINT,
    LARGEST_INT,
    MOMENTS,
    SIMPLE,
    Known,
    Translate,
    Translator,
    parts_of,
    text_of,
    whole_number,
)
from lakelib.plan.local_types import (
    CAST_ONE,
    INTEGERS,
    VOID,
    WRONG,
    Value,
    all_typed,
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
from lakelib.plan.sqltext import quoted

COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
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


# Literals and names


def _column(self: Translator, node: exp.Expr) -> Value:
    assert isinstance(node, exp.Column)
    return self.scope.column(node)


def _literal(self: Translator, node: exp.Expr) -> Value:
    assert isinstance(node, exp.Literal)
    text = str(node.this)
    if node.is_string:
        return Value(sql=literal(text), type="string")
    if text.isascii() and text.isdecimal() and int(text) <= LARGEST_BIGINT:
        kind = "int" if int(text) <= LARGEST_INT else "bigint"
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
    return cast(self.value(node.this), type_of(node.args["to"]))


def type_of(node: exp.Expr) -> str:
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


def _sum_of(sign: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        one, other, kind = _numbers(self, node)
        if not is_decimal(kind):
            one, other = typed(one, kind), typed(other, kind)
            return Value(sql=f"({one.sql} {sign} {other.sql})", type=kind)
        (digits, scale), (more_digits, more_scale) = parts_of(one), parts_of(other)
        wider = max(scale, more_scale)
        kind = decimal_type(max(digits - scale, more_digits - more_scale) + wider + 1, wider)
        one, other = typed(one, kind), typed(other, kind)
        return Value(sql=f"CAST({one.sql} {sign} {other.sql} AS {duck_type(kind)})", type=kind)

    return translate


def _product(self: Translator, node: exp.Expr) -> Value:
    one, other, kind = _numbers(self, node)
    if not is_decimal(kind):
        return Value(sql=f"({typed(one, kind).sql} * {typed(other, kind).sql})", type=kind)
    (digits, scale), (more_digits, more_scale) = parts_of(one), parts_of(other)
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
    kind = self.common((one, other), "arithmetic", by_digits=True)
    if kind == "double" or kind in INTEGERS or is_decimal(kind):
        return _known(one, kind), _known(other, kind), kind
    raise OnlySparkError(f"arithmetic with {one.type} and {other.type}", remedy=CAST_ONE)


def _known(value: Value, kind: str) -> Value:
    return typed(value, kind) if value.type == VOID else value


def _absolute(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node.this)
    if value.type in INTEGERS or is_decimal(value.type):
        return Value(sql=f"abs({value.sql})", type=value.type)
    raise OnlySparkError(f"abs of {value.type}")


def _rounded(self: Translator, node: exp.Expr) -> Value:
    value, places = self.value(node.this), node.args.get("decimals")
    found = decimal_parts(value) if is_decimal(value.type) else None
    wanted = 0 if places is None else whole_number(places)
    if found is None:
        raise OnlySparkError(f"round of {value.type}")
    scale = min(found[1], wanted)
    return cast(value, decimal_type(found[0] - found[1] + 1 + scale, scale))


# Conditions


def _compared(self: Translator, node: exp.Expr) -> Value:
    values = self.value(node.this), self.value(node.expression)
    is_bound = isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE) and not _are_columns(node.this, node.expression)
    one, other = _alike(self, *values, with_doubles=is_bound)
    return Value(sql=f"({one.sql} {COMPARISONS[type(node)]} {other.sql})", type="boolean")


def _same(self: Translator, node: exp.Expr) -> Value:
    one, other = _alike(self, self.value(node.this), self.value(node.expression))
    return Value(sql=f"({one.sql} IS NOT DISTINCT FROM {other.sql})", type="boolean")


def _are_columns(*nodes: exp.Expr) -> bool:
    return all(node.find(exp.Column) is not None for node in nodes)


def _alike(self: Translator, one: Value, other: Value, *, with_doubles: bool = False) -> tuple[Value, Value]:
    """Both in one type. Texts that are compared with days and moments are cast; those beside numbers are for Spark.
    So are doubles that are compared with each other: DuckDB may take one zero for the other where it joins by them."""
    kinds = {one.type, other.type}
    if "string" in kinds and len(kinds) == 2 and kinds & {*MOMENTS}:
        kind = (kinds - {"string"}).pop()
    else:
        kind = self.common((one, other), "a comparison", by_digits=True)
    is_known = (
        kind in (*SIMPLE, VOID) or is_decimal(kind) or ((with_doubles or self.nearly) and kind in ("float", "double"))
    )
    if not is_known:
        raise OnlySparkError(f"a comparison of {kind}")
    if kind == VOID:
        kind = "boolean"
    return typed(one, kind), typed(other, kind)


def _both(word: str) -> Translate:
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
    low, at_least = _alike(self, value, self.value(node.args["low"]), with_doubles=is_bound)
    high, at_most = _alike(self, value, self.value(node.args["high"]), with_doubles=is_bound)
    return Value(sql=f"({low.sql} >= {at_least.sql} AND {high.sql} <= {at_most.sql})", type="boolean")


def _in(self: Translator, node: exp.Expr) -> Value:
    """Spark brings all values to one type."""
    value = self.value(node.this)
    if node.args.get("query") is not None:
        if not self.nearly and not self.scope.is_conjunct(node):
            raise OnlySparkError(f"{quoted(node)} other than in WHERE, for a NULL")
        return _in_query(self, value, node.args["query"])
    given = self.values(node.expressions)
    if value.type in MOMENTS and {each.type for each in given} <= {"string", VOID, value.type}:
        given = [typed(each, value.type) for each in given]
    kind = self.common((value, *given), "a comparison")
    if self.comparable(Value(sql="", type=kind), "IN with values").type == VOID:
        raise OnlySparkError(quoted(node))
    listed = ", ".join(all_typed(given, kind))
    return Value(sql=f"({typed(value, kind).sql} IN ({listed}))", type="boolean")


def _in_query(self: Translator, value: Value, node: exp.Expr) -> Value:
    sql, kinds = self.scope.query(node)
    if self.nearly and len(kinds) == 1 and is_number(value.type) and is_number(kinds[0]):
        value = typed(value, self.common((value, Value(sql="", type=kinds[0])), "IN with a query,"))
    elif kinds != (value.type,):
        raise OnlySparkError(f"IN with a query, of {value.type} and {', '.join(kinds)}")
    self.comparable(value, "IN with a query,")
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


def _found_in(function: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        one, other = text_of(self, node.this), text_of(self, node.expression)
        return Value(sql=f"{function}({one.sql}, {other.sql})", type="boolean")

    return translate


# One of several values


def _case(self: Translator, node: exp.Expr) -> Value:
    compared = node.this and self.value(node.this)
    branches = [(_branch(self, compared, each.this), self.value(each.args["true"])) for each in node.args["ifs"]]
    default = self.value(node.args["default"]) if node.args.get("default") is not None else None
    return _chosen(self, branches, default)


def _branch(self: Translator, compared: Value | None, node: exp.Expr) -> str:
    if compared is None:
        return self.condition(node)
    one, other = _alike(self, compared, self.value(node))
    return f"({one.sql} = {other.sql})"


def _if(self: Translator, node: exp.Expr) -> Value:
    default = self.value(node.args["false"]) if node.args.get("false") is not None else None
    return _chosen(self, [(self.condition(node.this), self.value(node.args["true"]))], default)


def _chosen(self: Translator, branches: Sequence[tuple[str, Value]], default: Value | None) -> Value:
    values = [value for _, value in branches] + ([] if default is None else [default])
    kind = self.kept(values, "CASE")
    whens = " ".join(f"WHEN {condition} THEN {typed(value, kind).sql}" for condition, value in branches)
    rest = f" ELSE {typed(default, kind).sql}" if default is not None else ""
    return Value(sql=f"CASE {whens}{rest} END", type=kind)


def _coalesce(self: Translator, node: exp.Expr) -> Value:
    values = self.values([node.this, *node.expressions])
    kind = self.kept(values, "coalesce")
    return Value(sql=f"coalesce({', '.join(all_typed(values, kind))})", type=kind)


def _nullif(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node.this)
    one, other = _alike(self, value, self.value(node.expression))
    return Value(sql=f"CASE WHEN {one.sql} = {other.sql} THEN NULL ELSE {value.sql} END", type=value.type)


def _extreme(function: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        values = self.values([node.this, *node.expressions])
        kind = self.kept([self.comparable(each, function) for each in values], function)
        return Value(sql=f"{function}({', '.join(all_typed(values, kind))})", type=kind)

    return translate


SCALARS: Known = {
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
}
