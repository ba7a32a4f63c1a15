"""Pure. Arrays, maps and structs in people's queries: how they are made, what is in them, what becomes of their
elements. Moments within them are refused: in files they have a zone, and in the engine none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa
from sqlglot import exp

from lakelib.errors import OnlySparkError
from lakelib.plan.local_scalars import SCALARS
from lakelib.plan.local_translator import Known, Translate, Translator, check_arguments, check_comparable
from lakelib.plan.local_types import INTEGERS, VOID, WRONG, Value, all_typed, duck_type, failing, typed
from lakelib.plan.sqltext import quoted
from lakelib.rows.types import arrow_type, type_text

_OUTSIDE = "an index outside of its array"
_NO_ZEROTH = "an array's element 0, where the first is 1"


# What they are of


def element_type(value: Value) -> str | None:
    """Of an array; None for anything else. Raises OnlySparkError for moments."""
    kind = arrow_type(value.type) if value.type.startswith("array<") else None
    return None if kind is None else _known(kind.value_type)


def entry_types(value: Value) -> tuple[str, str] | None:
    """Of a map its keys' and its values'; None for anything else. Raises as `element_type` does."""
    kind = arrow_type(value.type) if value.type.startswith("map<") else None
    return None if kind is None else (_known(kind.key_type), _known(kind.item_type))


def _known(kind: pa.DataType) -> str:
    text = type_text(kind)
    if "timestamp" in text:
        raise OnlySparkError(f"a moment within {text}")
    return text


def _array(self: Translator, node: exp.Expr, named: exp.Expr) -> tuple[Value, str]:
    value = self.value(node)
    element = element_type(value)
    if element is None:
        raise OnlySparkError(f"{value.type} as an array: {quoted(named)}")
    return value, element


def _alike(self: Translator, nodes: Sequence[exp.Expr], what: str) -> tuple[list[str], str]:
    """Values in their common type."""
    values = self.values(nodes)
    kinds = {value.type for value in values}
    if len(kinds) == 1 and next(iter(kinds)) != VOID:
        kind = kinds.pop()
        return [value.sql for value in values], _known(arrow_type(kind))
    kind = self.kept(values, what)
    return all_typed(values, kind), _known(arrow_type(kind))


# Made


def _made_array(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "expressions")
    if not node.expressions:
        raise OnlySparkError("an array of nothing, whose type nobody knows")
    values, kind = _alike(self, node.expressions, "an array")
    return Value(sql=f"list_value({', '.join(values)})", type=f"array<{kind}>")


def _made_map(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "keys", "values")
    listed = [node.args["keys"], node.args["values"]]
    if any(not isinstance(each, exp.Array) or not each.expressions for each in listed):
        raise OnlySparkError(quoted(node))
    (keys, key), (values, item) = (_alike(self, each.expressions, "a map") for each in listed)
    _comparable(key)
    return Value(sql=f"map([{', '.join(keys)}], [{', '.join(values)}])", type=f"map<{key},{item}>")


def _made_struct(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "expressions")
    fields, parts = [], []
    for place, each in enumerate(node.expressions, start=1):
        named = isinstance(each, exp.PropertyEQ)
        name = each.this.name if named else each.name if isinstance(each, exp.Column) else f"col{place}"
        value = self.value(each.expression if named else each)
        if value.type == VOID:
            raise OnlySparkError(f"a field of nothing but NULL: {quoted(node)}")
        _known(arrow_type(value.type))
        fields.append(pa.field(name, arrow_type(value.type)))
        parts.append(f'"{name.replace(chr(34), chr(34) * 2)}" := {value.sql}')
    if not parts:
        raise OnlySparkError(quoted(node))
    return Value(sql=f"struct_pack({', '.join(parts)})", type=type_text(pa.struct(fields)))


def _sequence(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "start", "end")
    start, end = self.value(node.args["start"]), self.value(node.args["end"])
    kind = self.common((start, end), "sequence")
    if kind not in INTEGERS:
        raise OnlySparkError(quoted(node))
    one, other = all_typed((start, end), kind)
    sql = (
        f"CASE WHEN {one} <= {other} THEN generate_series({one}, {other}) ELSE generate_series({one}, {other}, -1) END"
    )
    return Value(sql=f"CAST({sql} AS {duck_type(kind)}[])", type=f"array<{kind}>")


# What is in them


def _element(self: Translator, node: exp.Expr) -> Value:
    """`a[0]`, `m['k']`, and element_at, which counts from 1, and from the end backwards."""
    check_arguments(node, "this", "expressions", "offset", "safe")
    if len(node.expressions) != 1:
        raise OnlySparkError(quoted(node))
    value, index = self.value(node.this), self.value(node.expressions[0])
    entries = entry_types(value)
    if entries is not None:
        key, item = entries
        if index.type != key and self.common((index, Value(sql="", type=key)), "a key") != key:
            raise OnlySparkError(f"a key that is {index.type}, of a map of {key}: {quoted(node)}")
        return Value(sql=f"map_extract_value({value.sql}, {typed(index, key).sql})", type=item)
    element = element_type(value)
    if element is None or index.type not in INTEGERS:
        raise OnlySparkError(f"{value.type} by {index.type}: {quoted(node)}")
    at, of = index.sql, value.sql
    if not node.args.get("offset"):
        is_outside = f"{at} < 0 OR {at} >= len({of})"
        return _unless(is_outside, _OUTSIDE, f"list_extract({of}, {at} + 1)", element)
    found = f"list_extract({of}, {at})"
    if not node.args.get("safe"):
        found = _unless(f"abs({at}) > len({of})", _OUTSIDE, found, element).sql
    return _unless(f"{at} = 0 AND {of} IS NOT NULL", _NO_ZEROTH, found, element)


def _unless(condition: str, wrong: str, sql: str, kind: str) -> Value:
    return Value(sql=f"CASE WHEN {condition} THEN {failing(WRONG, wrong)} ELSE {sql} END", type=kind)


def _size(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this")
    value = self.value(node.this)
    if value.type.startswith("array<"):
        return Value(sql=f"CAST(len({value.sql}) AS INTEGER)", type="int")
    if value.type.startswith("map<"):
        return Value(sql=f"CAST(cardinality({value.sql}) AS INTEGER)", type="int")
    raise OnlySparkError(quoted(node))


def _keys(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this")
    return _side(self, node.this, 0, "map_keys", node)


def _side(self: Translator, node: exp.Expr, place: int, function: str, named: exp.Expr) -> Value:
    value = self.value(node)
    entries = entry_types(value)
    if entries is None:
        raise OnlySparkError(f"{value.type} as a map: {quoted(named)}")
    return Value(sql=f"{function}({value.sql})", type=f"array<{entries[place]}>")


def _contains(self: Translator, node: exp.Expr) -> Value:
    """NULL where it is not found, and something that nobody knows is there."""
    check_arguments(node, "this", "expression")
    array, element = _array(self, node.this, node)
    sought = self.value(node.expression)
    kind = self.common((sought, Value(sql="", type=_comparable(element))), "array_contains")
    if kind != element:
        raise OnlySparkError(f"array_contains of {array.type} and {sought.type}")
    return _found_in(f"list_contains({array.sql}, {typed(sought, kind).sql})", array.sql)


def _found_in(found: str, of: str) -> Value:
    return Value(sql=f"CASE WHEN {found} THEN true WHEN len({of}) = list_count({of}) THEN {found} END", type="boolean")


def _end_of(function: str) -> Translate:
    def translate(self: Translator, node: exp.Expr) -> Value:
        check_arguments(node, "this")
        array, element = _array(self, node.this, node)
        return Value(sql=f"{function}({array.sql})", type=_comparable(element))

    return translate


def _sorted(self: Translator, node: exp.Expr) -> Value:
    """sort_array, of which NULLs are below all, and array_sort, of which they come last."""
    check_arguments(node, "this", "asc", "nulls_first")
    array, element = _array(self, node.this, node)
    _comparable(element)
    upwards, first = node.args.get("asc") or exp.true(), node.args["nulls_first"]
    if not isinstance(upwards, exp.Boolean) or not isinstance(first, exp.Boolean):
        raise OnlySparkError(quoted(node))
    order, nulls = "ASC" if upwards.this else "DESC", "FIRST" if first.this else "LAST"
    return Value(sql=f"list_sort({array.sql}, '{order}', 'NULLS {nulls}')", type=array.type)


def _distinct(self: Translator, node: exp.Expr) -> Value:
    """Each where it comes first."""
    check_arguments(node, "this")
    array, element = _array(self, node.this, node)
    _comparable(element)
    first = "coalesce(list_position(l, x), list_position(list_transform(l, lambda y: y IS NULL), true)) = i"
    sql = f"list_extract(list_transform([{array.sql}], lambda l: list_filter(l, lambda x, i: {first})), 1)"
    return Value(sql=sql, type=array.type)


def _joined(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this", "expression", "null")
    array, element = _array(self, node.this, node)
    by, instead = self.value(node.expression), node.args.get("null")
    if element != "string" or by.type != "string" or instead is not None:
        raise OnlySparkError(quoted(node))
    sql = f"CASE WHEN list_count({array.sql}) = 0 THEN '' ELSE array_to_string({array.sql}, {by.sql}) END"
    return Value(sql=f"CASE WHEN {array.sql} IS NOT NULL THEN {sql} END", type="string")


def _comparable(kind: str) -> str:
    """Raises OnlySparkError for values that are not equal, or not in one order, in both engines."""
    return check_comparable(Value(sql="", type=kind), "elements").type


# What becomes of their elements


def _each(self: Translator, array: exp.Expr, function: exp.Expr, named: exp.Expr) -> tuple[Value, str, str, Value]:
    """The array, its elements' type, what an element is called, and what the function makes of one."""
    value, element = _array(self, array, named)
    if not isinstance(function, exp.Lambda) or len(function.expressions) != 1:
        raise OnlySparkError(quoted(named))
    taken = {value.sql for value in self.named.values()}
    own = next(each for number in count() if (each := f"e{number}") not in taken)
    name = function.expressions[0].name.casefold()
    inner = replace(self, named={**self.named, name: Value(sql=own, type=element)})
    return value, element, own, inner.value(function.this)


def _transformed(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this", "expression")
    array, _, own, made = _each(self, node.this, node.expression, node)
    if made.type == VOID:
        raise OnlySparkError(quoted(node))
    _known(arrow_type(made.type))
    return Value(sql=f"list_transform({array.sql}, lambda {own}: {made.sql})", type=f"array<{made.type}>")


def _kept(self: Translator, node: exp.Expr) -> Value:
    check_arguments(node, "this", "expression")
    array, _, own, made = _each(self, node.this, node.expression, node)
    return Value(sql=f"list_filter({array.sql}, lambda {own}: {_asked(made, node)})", type=array.type)


def _any(self: Translator, node: exp.Expr) -> Value:
    """Whether it is true of an element; NULL where it is of none, and of one nobody knows."""
    if node.args.get("expression") is None:
        return SCALARS[exp.Exists](self, node)
    array, _, own, made = _each(self, node.this, node.expression, node)
    told = f"list_transform({array.sql}, lambda {own}: {_asked(made, node)})"
    return _found_in(f"list_contains({told}, true)", told)


def _asked(made: Value, node: exp.Expr) -> str:
    if made.type not in ("boolean", VOID):
        raise OnlySparkError(f"a condition that is {made.type}: {quoted(node)}")
    return typed(made, "boolean").sql


def _named(self: Translator, node: exp.Expr) -> Value:
    """What a function calls an element."""
    value = self.named.get(node.name.casefold())
    if value is None:
        raise OnlySparkError(f"the column {quoted(node)}, of which there is none", kind="unknown_column")
    return value


# By their names alone


def _by_name(self: Translator, node: exp.Expr) -> Value:
    function = _NAMED.get(node.name.casefold())
    if function is None:
        raise OnlySparkError(quoted(node))
    return function(self, node)


def _values(self: Translator, node: exp.Expr) -> Value:
    (given,) = _given(node, 1)
    return _side(self, given, 1, "map_values", node)


def _cardinality(self: Translator, node: exp.Expr) -> Value:
    (given,) = _given(node, 1)
    return _size(self, exp.ArraySize(this=given))


def _got(self: Translator, node: exp.Expr) -> Value:
    """NULL where there is none."""
    given, index = _given(node, 2)
    array, element = _array(self, given, node)
    at = self.value(index)
    if at.type not in INTEGERS:
        raise OnlySparkError(quoted(node))
    found = f"list_extract({array.sql}, CAST({at.sql} AS BIGINT) + 1)"
    return Value(sql=f"CASE WHEN {at.sql} >= 0 AND {at.sql} < len({array.sql}) THEN {found} END", type=element)


def _all(self: Translator, node: exp.Expr) -> Value:
    given, function = _given(node, 2)
    array, _, own, made = _each(self, given, function, node)
    told = f"list_transform({array.sql}, lambda {own}: {_asked(made, node)})"
    some = f"list_contains({told}, false)"
    return Value(
        sql=f"CASE WHEN {some} THEN false WHEN len({told}) = list_count({told}) THEN NOT {some} END", type="boolean"
    )


def _given(node: exp.Expr, count: int) -> list[exp.Expr]:
    if len(node.expressions) != count:
        raise OnlySparkError(quoted(node))
    return list(node.expressions)


_NAMED: Mapping[str, Callable[[Translator, exp.Expr], Value]] = {
    "map_values": _values,
    "cardinality": _cardinality,
    "get": _got,
    "forall": _all,
}


# Of many rows


def collected(self: Translator, node: exp.Expr, suffix: str) -> Value:
    """All that are there of a group, in whatever order. `suffix` is a filter."""
    check_arguments(node, "this", "nulls_excluded")
    value = self.value(node.this)
    if value.type == VOID or suffix:
        raise OnlySparkError(quoted(node))
    kind = _known(arrow_type(value.type))
    sql = f"coalesce(list({value.sql}) FILTER (WHERE {value.sql} IS NOT NULL), [])"
    return Value(sql=sql, type=f"array<{kind}>")


NESTED: Known = {
    exp.Array: _made_array,
    exp.VarMap: _made_map,
    exp.Struct: _made_struct,
    exp.GenerateSeries: _sequence,
    exp.Bracket: _element,
    exp.ArraySize: _size,
    exp.MapKeys: _keys,
    exp.ArrayContains: _contains,
    exp.ArrayMin: _end_of("list_min"),
    exp.ArrayMax: _end_of("list_max"),
    exp.ArraySort: _sorted,
    exp.ArrayDistinct: _distinct,
    exp.ArrayToString: _joined,
    exp.Transform: _transformed,
    exp.ArrayFilter: _kept,
    exp.Exists: _any,
    exp.Identifier: _named,
    exp.Anonymous: _by_name,
}

NESTED_ARGUMENTS: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.Array: ("expressions",),
    exp.VarMap: ("keys", "values"),
    exp.Struct: ("expressions",),
    exp.GenerateSeries: ("start", "end"),
    exp.Bracket: ("this", "expressions", "offset", "safe"),
    exp.ArrayToString: ("this", "expression", "null"),
    exp.ArraySort: ("this", "asc", "nulls_first"),
    exp.ArrayAgg: ("this", "nulls_excluded"),
    exp.Identifier: ("this", "quoted"),
    exp.Anonymous: ("this", "expressions"),
}
