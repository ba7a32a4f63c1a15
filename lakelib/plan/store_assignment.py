"""Pure. What may be stored in a column of which type, and how it is cast, as Spark does it in ANSI mode: numbers become
numbers, if they fit, days and moments each other, and what is no text may become one; a text becomes nothing else
without a cast that the statement says."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lakelib.errors import InvalidInputError, OnlySparkError
from lakelib.model.schema import Column
from lakelib.plan.asked import AskedQuery
from lakelib.plan.local_select import in_quotes
from lakelib.plan.local_translator import Known, Translator
from lakelib.plan.local_types import UNLIKE, VOID, Value, cast, failing, is_decimal, is_number, typed

_STORED = "lake_stored"
_MOMENTS = ("date", "timestamp", "timestamp_ntz")
_NESTED = ("array<", "map<", "struct<")


def stored(value: Value, column: Column, place: str = "") -> Value:
    """The value as the column takes it; a nested one as it is, which the write fits to the column. Raises
    InvalidInputError, with the place in the text, for what cannot be stored there."""
    kind = column.type
    if value.type == kind or (value.type.startswith(_NESTED) and kind.startswith(_NESTED)):
        return value
    if value.type == VOID:
        return value if kind.startswith(_NESTED) else cast(value, kind)
    try:
        if _is_storable(value.type, kind):
            return _cast(value, kind)
    except OnlySparkError:
        raise _not_stored(value, column, place, "Cast it to text as it is meant.") from None
    raise _not_stored(value, column, place, f"Say how: CAST(… AS {kind.upper()}).")


def stored_in(value: exp.Expr, column: Column, place: str) -> exp.Expr:
    """In a query: the value as the column takes it. For who knows nothing of columns it is a cast."""
    node = exp.Cast(this=value, to=exp.DataType.build(column.type, dialect="spark"))
    node.meta[_STORED] = (column, place)
    return node


def all_stored(case: exp.Case) -> exp.Case:
    """In a query: one of values that are each stored in the same column."""
    case.meta[_STORED] = True
    return case


def storing(known: Known) -> Known:
    """What is translated, with what `stored_in` and `all_stored` mean."""

    def cast_of(self: Translator, node: exp.Expr) -> Value:
        told = node.meta.get(_STORED)
        return known[exp.Cast](self, node) if told is None else stored(self.value(node.this), *told)

    def case_of(self: Translator, node: exp.Expr) -> Value:
        return known[exp.Case](self, node) if node.meta.get(_STORED) is None else _one_of(self, node)

    return {**known, exp.Cast: cast_of, exp.Case: case_of}


def _one_of(self: Translator, node: exp.Expr) -> Value:
    """What is nested is no value that CASE knows, but as all are of one type it is only handed on."""
    branches = [(self.condition(each.this), self.value(each.args["true"])) for each in node.args["ifs"]]
    kinds = {value.type for _, value in branches} - {VOID}
    if len(kinds) > 1:
        raise OnlySparkError(f"one column of {' and '.join(sorted(kinds))}")
    whens = " ".join(f"WHEN {condition} THEN {value.sql}" for condition, value in branches)
    return Value(sql=f"CASE {whens} END", type=next(iter(kinds), VOID))


def shape_query(
    query: AskedQuery, into: Sequence[Column], places: Sequence[str], *, ordered_by: int | None = None
) -> AskedQuery:
    """The query, its columns in this order stored in these; ordered by one behind them, if told. NULL of a nested type
    is left out."""
    values = [Value(sql=f"q.c{place}", type=kind) for place, kind in enumerate(query.types)]
    pairs = zip(values[: len(into)], into, places, strict=True)
    made = [(column.name, _stored_by(query, value, column, place)) for value, column, place in pairs]
    kept = [(name, value) for name, value in made if value.type != VOID] or made[:1]
    name_of = _in_backticks if query.on_spark else in_quotes
    listed = ", ".join(f"{value.sql} AS {name_of(name)}" for name, value in kept)
    names = ", ".join(f"c{place}" for place in range(len(values)))
    order = "" if ordered_by is None else f" ORDER BY q.c{ordered_by}"
    return replace(
        query,
        sql=f"SELECT {listed} FROM ({query.sql}) AS q({names}){order}",
        wide_sql=f"SELECT {listed} FROM ({query.wide_sql}) AS q({names}){order}",
        columns=tuple((name, "string" if value.type == VOID else value.type) for name, value in kept),
        types=tuple(value.type for _, value in kept),
    )


def _stored_by(query: AskedQuery, value: Value, column: Column, place: str) -> Value:
    """Spark casts by itself what may be stored."""
    found = stored(value, column, place)
    if not query.on_spark or found.type == value.type:
        return value if query.on_spark else found
    return Value(sql=f"CAST({value.sql} AS {found.type})", type=found.type)


def _in_backticks(name: str) -> str:
    """In a text that is a format."""
    return "`" + name.replace("`", "``").replace("{", "{{").replace("}", "}}") + "`"


def _is_storable(given: str, kind: str) -> bool:
    if kind == "string":
        return not given.startswith(_NESTED)
    return (is_number(given) and is_number(kind)) or (given in _MOMENTS and kind in _MOMENTS)


def _cast(value: Value, kind: str) -> Value:
    if is_decimal(kind) and value.type in ("float", "double"):  # by its digits, not by what they stand for
        digits = f"CAST(CAST({value.sql} AS DOUBLE) AS VARCHAR)"
        return Value(sql=f"CAST({digits} AS {kind.upper()})", type=kind)
    if is_decimal(value.type) and kind == "string":
        return Value(sql=f"CAST({value.sql} AS VARCHAR)", type=kind)
    if value.type in ("timestamp", "timestamp_ntz") and kind == "string":
        unlike = failing(UNLIKE, "a moment before the year 1 or after 9999 as text")
        outside = f"year({value.sql}) NOT BETWEEN 1 AND 9999"
        return Value(sql=f"CASE WHEN {outside} THEN {unlike} ELSE CAST({value.sql} AS VARCHAR) END", type=kind)
    if value.type == "float" and kind not in ("double", "string"):
        value = typed(value, "double")
    return typed(value, kind)


def _not_stored(value: Value, column: Column, place: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(
        f"Column {column.name!r} has type {column.type}, and what is to be stored in it has type {value.type}{place}.",
        kind="wrong_type",
        remedy=remedy,
    )
