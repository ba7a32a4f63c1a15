"""Pure. What every expression of a query is translated with: names, inner queries, and the table of what is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import OnlySparkError
from lakelib.plan.local_types import (
    INTEGERS,
    VOID,
    Value,
    common_type,
    decimal_parts,
    duck_type,
    is_decimal,
    literal,
    typed,
)
from lakelib.plan.sqltext import quoted
from lakelib.rows.types import arrow_type, type_text

MOMENTS = ("date", "timestamp", "timestamp_ntz")
SIMPLE = ("boolean", *INTEGERS, "string", "binary", *MOMENTS)
"""Types, besides decimals, whose values are equal or not, and in one order, in both engines: doubles have two zeros."""
LARGEST_INT, LARGEST_BIGINT = 2**31 - 1, 2**63 - 1


class Scope(Protocol):
    """What names and inner queries mean where an expression stands."""

    def column(self, node: exp.Column) -> Value: ...
    def query(self, node: exp.Expr) -> tuple[str, tuple[str, ...]]:
        """An inner query's text, and the types of its columns."""

    def groupings(self) -> list[exp.Expr]:
        """What is grouped by."""

    def is_conjunct(self, node: exp.Expr) -> bool:
        """Whether rows are left out alike for which it is false and for which it is NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    scope: Scope
    partition: str
    """What `:partition` stands for."""
    known: "Known"
    """All that is translated."""
    nearly: bool = False
    """Whether doubles may be compared and computed with as the engine does it, to the last digits."""
    narrow: bool = False
    """Whether sums may be of products that overflow, which is an error, and sooner than they have to."""
    parameters: "Mapping[str, str]" = field(default_factory=dict)
    """The types of what is bound, by name."""
    named: "Mapping[str, Value]" = field(default_factory=dict)
    """What functions of elements, around an expression, call those."""
    arguments: "Mapping[type[exp.Expr], tuple[str, ...]] | None" = None
    """What may be said about a node, where that is more than transforms may."""

    def value(self, node: exp.Expr) -> Value:
        """Raises OnlySparkError for what is not translated."""
        translate = self.known.get(type(node))
        if translate is None:
            raise placed(OnlySparkError(quoted(node)), node)
        try:
            check_arguments(node, *(self.arguments or ARGUMENTS).get(type(node), ("this", "expression")))
            return translate(self, node)
        except OnlySparkError as error:
            raise placed(error, node) from None

    def comparable(self, value: Value, what: str) -> Value:
        """Raises OnlySparkError for values that the engines do not compare alike."""
        return value if self.nearly and value.type in ("float", "double") else check_comparable(value, what)

    def common(self, values: Sequence[Value], what: str, *, by_digits: bool = False) -> str:
        """The type that Spark brings the values to."""
        return common_type(values, what, by_digits=by_digits, nearly=self.nearly)

    def kept(self, values: Sequence[Value], what: str) -> str:
        """Their type, in which they stay."""
        kind = self.common(values, what)
        if kind == VOID:
            raise OnlySparkError(f"{what} of nothing but NULL")
        duck_type(kind)
        return kind

    def values(self, nodes: Sequence[exp.Expr]) -> list[Value]:
        return [self.value(node) for node in nodes]

    def condition(self, node: exp.Expr) -> str:
        """What has to be a boolean."""
        value = self.value(node)
        if value.type not in ("boolean", VOID):
            raise OnlySparkError(f"a condition that is {value.type}: {quoted(node)}")
        return typed(value, "boolean").sql


Translate = Callable[[Translator, exp.Expr], Value]
Known = Mapping[type[exp.Expr], Translate]


def placed(error: OnlySparkError, node: exp.Expr) -> OnlySparkError:
    """The error, with the place of what it speaks of, if that has one."""
    if error.line is None:
        place = next((each.meta for each in node.walk() if "line" in each.meta), {})
        error.line, error.column = place.get("line"), first_column(place) if place else None
    return error


def first_column(place: Mapping[str, int]) -> int:
    """sqlglot tells where a name ends."""
    return place["col"] - (place["end"] - place["start"])


def check_arguments(node: exp.Expr, *known: str) -> None:
    """Raises OnlySparkError for anything about a node that is not one of these."""
    further = [name for name, given in node.args.items() if given and name not in known]
    if further:
        raise OnlySparkError(quoted(node))


def field_of(value: Value, wanted: str) -> Value:
    """A field of a struct. Raises OnlySparkError if it has none of that name."""
    known = arrow_type(value.type) if value.type.startswith("struct<") else None
    for each in known or ():
        if each.name.casefold() == wanted.casefold():
            return Value(sql=f"struct_extract({value.sql}, {literal(each.name)})", type=type_text(each.type))
    raise OnlySparkError(f"the field {wanted!r}, which {value.type} does not have", kind="unknown_column")


def check_comparable(value: Value, what: str) -> Value:
    if value.type in (*SIMPLE, VOID) or is_decimal(value.type):
        return value
    raise OnlySparkError(f"{what} of type {value.type}")


def text_of(self: Translator, node: exp.Expr) -> Value:
    value = self.value(node)
    if value.type not in ("string", VOID):
        raise OnlySparkError(f"{value.type} as text: {quoted(node)}")
    return typed(value, "string")


def whole_number(node: exp.Expr) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        found = int(node.this)
        if found <= LARGEST_INT:
            return found
    raise OnlySparkError(f"{quoted(node)} where a number has to stand")


def parts_of(value: Value) -> tuple[int, int]:
    found = decimal_parts(value)
    assert found is not None
    return found


ARGUMENTS: Mapping[type[exp.Expr], tuple[str, ...]] = {
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
