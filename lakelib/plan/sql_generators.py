"""Pure. What makes several rows of one: explode and its kin, in LATERAL VIEW, behind FROM, and where columns are
chosen."""

from typing import TYPE_CHECKING

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import OnlySparkError
from lakelib.plan.local_translator import Translator, check_arguments
from lakelib.plan.sql_nested import element_type, entry_types
from lakelib.plan.sqltext import quoted
from lakelib.rows.types import arrow_type, type_text

if TYPE_CHECKING:
    from lakelib.plan.local_types import Value

GENERATORS = (exp.Explode, exp.Inline)
"""The classes of its kin are below the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    sql: str
    columns: tuple[tuple[str, str], ...]
    keeps_all: bool
    """Whether a row of which it makes none stays, with NULLs."""


def generated(translate: Translator, node: exp.Expr) -> Generated:
    """The rows that it makes of one, as a query. Raises OnlySparkError for what is no array and no map."""
    check_arguments(node, "this")
    value = translate.value(node.this)
    parts = _inlined(value, node) if isinstance(node, exp.Inline) else _exploded(value, node)
    if isinstance(node, exp.Posexplode):
        length = "len" if value.type.startswith("array<") else "cardinality"
        parts = [("pos", "int", f"CAST(range(CAST({length}({value.sql}) AS BIGINT)) AS INTEGER[])"), *parts]
    chosen = ", ".join(f"unnest({sql}) AS c{place}" for place, (_, _, sql) in enumerate(parts))
    return Generated(
        sql=f"SELECT {chosen}",
        columns=tuple((name, kind) for name, kind, _ in parts),
        keeps_all="Outer" in type(node).__name__,
    )


def _exploded(value: "Value", node: exp.Expr) -> list[tuple[str, str, str]]:
    entries = entry_types(value)
    if entries is not None:
        return [("key", entries[0], f"map_keys({value.sql})"), ("value", entries[1], f"map_values({value.sql})")]
    element = element_type(value)
    if element is None:
        raise OnlySparkError(f"{value.type} as an array: {quoted(node)}")
    return [("col", element, value.sql)]


def _inlined(value: "Value", node: exp.Expr) -> list[tuple[str, str, str]]:
    element = element_type(value)
    if element is None or not element.startswith("struct<"):
        raise OnlySparkError(f"{value.type} as an array of structs: {quoted(node)}")
    fields = list(arrow_type(element))
    return [
        (
            each.name,
            type_text(each.type),
            f"list_transform({value.sql}, lambda s: struct_extract(s, '{each.name.replace(chr(39), chr(39) * 2)}'))",
        )
        for each in fields
    ]
