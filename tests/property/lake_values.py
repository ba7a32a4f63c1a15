"""Pure. Values, columns and predicates that the lake's model draws from, and what SQL says of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

LONG = "x" * 70
TEXTS = ("", "a", "A", "a,b", "a=b", "a/b", "%41", " ", "ü", "日本", "it's", ".", "null", LONG, LONG + "y")
EARLY, LATE = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), datetime(2300, 1, 1, tzinfo=UTC)

VALUES: dict[str, tuple[Any, ...]] = {
    "tinyint": (-128, -1, 0, 1, 127),
    "int": (-(2**31), -2, -1, 0, 1, 2, 3, 2**31 - 1),
    "bigint": (-(2**63), -1, 0, 1, 2, 3, 4, 5, 2**63 - 1),
    "float": (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.0),
    "double": (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.0, 1e300),
    "decimal(10,2)": (Decimal("-99999999.99"), Decimal("0.00"), Decimal("0.01"), Decimal("12.50")),
    "decimal(38,10)": (Decimal("-1.0000000000"), Decimal("0E-10"), Decimal("9999999999999999999999999999.9999999999")),
    "string": TEXTS,
    "binary": (b"", b"\x00", b"a", b"\xff", b"\xff" * 70),
    "boolean": (False, True),
    "date": (date(1, 1, 1), date(1969, 12, 31), date(2026, 11, 18), date(9999, 12, 31)),
    "timestamp": (EARLY, datetime(2026, 11, 18, 10, 30, tzinfo=UTC), LATE),
    "timestamp_ntz": tuple(moment.replace(tzinfo=None) for moment in (EARLY, LATE)),
}
WIDER = {
    "tinyint": "int",
    "int": "bigint",
    "float": "double",
    "decimal(10,2)": "decimal(14,2)",
    "decimal(14,2)": "decimal(18,4)",
}
VALUES["decimal(14,2)"] = VALUES["decimal(10,2)"]
VALUES["decimal(18,4)"] = (*VALUES["decimal(10,2)"], Decimal("0.0125"), Decimal("1.2500"))
NESTED: dict[str, tuple[Any, ...]] = {
    "array<bigint>": ([], [3], [1, None, 1], [-(2**63)]),
    "array<string>": ([], ["a", "ü"], ["a", None, "a", ""]),
    "map<string,bigint>": ([], [("a", 1)], [("a", 2), ("ü", None)]),
}
_FLOATS = (math.nan, math.inf, -math.inf, 0.0, 1.5, -2.0)
_CENTS = (Decimal("-1.50"), Decimal("0.00"), Decimal("12.50"))
ADDED: dict[str, tuple[Any, ...]] = {
    "bigint": (-(2**40), -1, 0, 1, 2),
    "float": _FLOATS,
    "double": _FLOATS,
    "decimal(10,2)": _CENTS,
    "decimal(14,2)": _CENTS,
    "decimal(18,4)": (*_CENTS, Decimal("0.0125")),
}
"""What many of fit their type together, and whose sum is the same in any order."""
MULTIPLIED: dict[str, tuple[Any, ...]] = {
    "bigint": (-1, 0, 1),
    "float": (math.nan, -1.0, 0.0, 1.0),
    "double": (math.nan, -1.0, 0.0, 1.0),
}
FUNCTIONS = (
    *(("sum", kind) for kind in ADDED),
    *(("product", kind) for kind in MULTIPLIED),
    ("count", "bigint"),
    ("approx_count_distinct", "bigint"),
    *((name, kind) for name in ("min", "max") for kind in VALUES),
    *((name, kind) for name in ("first", "last", "first_non_null", "last_non_null") for kind in (*VALUES, *NESTED)),
    ("bool_and", "boolean"),
    ("bool_or", "boolean"),
    *(("collect_list", kind) for kind in ("array<bigint>", "array<string>")),
    *(("collect_set", kind) for kind in ("array<bigint>", "array<string>")),
    ("merge_map", "map<string,bigint>"),
    *((name, "string") for name in ("listagg", "listagg(; )", "listagg()")),
)
"""Of an aggregate, with a type that each fits."""

ARROW: dict[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(14,2)": pa.decimal128(14, 2),
    "decimal(18,4)": pa.decimal128(18, 4),
    "decimal(38,10)": pa.decimal128(38, 10),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "array<bigint>": pa.list_(pa.int64()),
    "array<string>": pa.list_(pa.string()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
}
FLAT = tuple(VALUES)
"""The types that are not nested."""
KEY_TYPES = ("tinyint", "int", "bigint", "decimal(38,10)", "string", "binary", "boolean", "date", "timestamp")
ORDER_TYPES = ("int", "bigint", "double", "string", "timestamp", "decimal(10,2)")


@dataclass(frozen=True, slots=True)
class Col:
    """A column of the model: it keeps its id for life."""

    id: int
    name: str
    type: str
    function: str | None = None
    """Of an aggregate."""

    @property
    def values(self) -> tuple[Any, ...]:
        """What rows may have."""
        own = {"sum": ADDED, "product": MULTIPLIED}.get(self.function or "", VALUES)
        return own[self.type] if self.type in own else NESTED[self.type]

    @property
    def sql(self) -> str:
        """Its name as SQL quotes it."""
        return "`" + self.name.replace("`", "``") + "`"


COMMIT = Col(-1, "_commit", "bigint")


def rank(value: Any) -> Any:
    """What a value is ordered by; NaN is above every number."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def rank_or_lowest(value: Any) -> tuple[Any, ...]:
    """Orders NULL below all values."""
    return () if value is None else (rank(value),)


def canonical(value: Any) -> Any:
    """Equal exactly if two values are the same to the bit: NaN equals itself, -0.0 is not 0.0."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, list):
        parts = tuple(map(canonical, value))
        return tuple(sorted(parts)) if value and isinstance(value[0], tuple) else parts  # entries of a map
    return repr(value) if isinstance(value, float) else value


def literal(type_text: str, value: Any) -> str:
    """A value as SQL text."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"'{value.isoformat(sep=' ').replace('+00:00', 'Z')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


Row = Callable[[Col], Any]
"""A row's value of a column."""


class _Shown:
    """Hypothesis prints its SQL text."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(self.text)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, repr=False)
class Leaf(_Shown):
    """One test of a row; `value` gives True, False or None."""

    text: str
    columns: frozenset[Col]
    value: Callable[[Row], bool | None]
    never_false: bool = False

    def may_be(self, wanted: bool, known: frozenset[Col], row: Row) -> bool:
        """Whether it may have that value, given only the known columns of a row."""
        if self.columns <= known:
            return self.value(row) is wanted
        return wanted or not self.never_false


@dataclass(frozen=True, slots=True, repr=False)
class Not(_Shown):
    part: "Pred"

    @property
    def text(self) -> str:
        return f"NOT ({self.part.text})"

    @property
    def columns(self) -> frozenset[Col]:
        return self.part.columns

    def value(self, row: Row) -> bool | None:
        found = self.part.value(row)
        return None if found is None else not found

    def may_be(self, wanted: bool, known: frozenset[Col], row: Row) -> bool:
        return self.part.may_be(not wanted, known, row)


@dataclass(frozen=True, slots=True, repr=False)
class Both(_Shown):
    """AND, or with `decides` True OR: that value of one part decides the whole."""

    decides: bool
    parts: "tuple[Pred, ...]"
    shown: str = ""
    columns: frozenset[Col] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", frozenset().union(*(part.columns for part in self.parts)))

    @property
    def text(self) -> str:
        word = " OR " if self.decides else " AND "
        return self.shown or word.join(f"({part.text})" for part in self.parts)

    def value(self, row: Row) -> bool | None:
        found = [part.value(row) for part in self.parts]
        if self.decides in found:
            return self.decides
        return None if None in found else not self.decides

    def may_be(self, wanted: bool, known: frozenset[Col], row: Row) -> bool:
        combine = any if wanted is self.decides else all
        return combine(part.may_be(wanted, known, row) for part in self.parts)


Pred = Leaf | Not | Both

ALWAYS = Leaf("TRUE", frozenset(), lambda _row: True)
_NULL = Leaf("NULL", frozenset(), lambda _row: None)
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def compare(column: Col, op: str, value: Any) -> Leaf:
    wanted, test = rank(value), _TESTS[op]

    def judge(row: Row) -> bool | None:
        found = row(column)
        return None if found is None else test(rank(found), wanted)

    return Leaf(f"{column.sql} {op} {literal(column.type, value)}", frozenset((column,)), judge)


def is_null(column: Col) -> Leaf:
    return Leaf(f"{column.sql} IS NULL", frozenset((column,)), lambda row: row(column) is None)


def compare_columns(left: Col, op: str, right: Col) -> Leaf:
    def judge(row: Row) -> bool | None:
        found = row(left), row(right)
        return None if None in found else _TESTS[op](rank(found[0]), rank(found[1]))

    return Leaf(f"{left.sql} {op} {right.sql}", frozenset((left, right)), judge)


def member(column: Col, values: Sequence[Any], *, with_null: bool) -> Pred:
    ranks = [rank(value) for value in values]
    shown = ", ".join([literal(column.type, value) for value in values] + ["NULL"] * with_null)
    inside = Leaf(
        f"{column.sql} IN ({shown})",
        frozenset((column,)),
        lambda row: None if row(column) is None else rank(row(column)) in ranks,
    )
    return Both(True, (inside, _NULL), shown=inside.text) if with_null else inside


def starts_with(column: Col, start: str) -> Leaf:
    def judge(row: Row) -> bool | None:
        found = row(column)
        return None if found is None else found.startswith(start)

    escaped = start.replace("%", r"\\%").replace("'", "''")
    return Leaf(f"{column.sql} LIKE '{escaped}%'", frozenset((column,)), judge, never_false=not start)


@st.composite
def leaves(draw: st.DrawFn, columns: Sequence[Col]) -> Pred:
    column = draw(st.sampled_from(columns))
    values = (1, 2, 3, 5, 8) if column == COMMIT else VALUES[column.type]
    kind = draw(st.sampled_from(("compare", "compare", "in", "null", "between", "like", "pair", "constant")))
    if kind == "null" and column != COMMIT:
        return is_null(column)
    if kind == "in":
        return member(column, draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)), with_null=draw(_rarely))
    if kind == "between":
        low, high = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        shown = f"{column.sql} BETWEEN {literal(column.type, low)} AND {literal(column.type, high)}"
        return Both(False, (compare(column, ">=", low), compare(column, "<=", high)), shown=shown)
    if kind == "like" and column.type == "string":
        return starts_with(column, draw(st.sampled_from(("", "a", "a%", "x", LONG, "it's"))))
    if kind == "pair":
        alike = [other for other in columns if other.type == column.type]
        return compare_columns(column, draw(_ops), draw(st.sampled_from(alike)))
    if kind == "constant":
        return draw(st.sampled_from(_CONSTANTS))
    return compare(column, draw(_ops), draw(st.sampled_from(values)))


_ops = st.sampled_from(tuple(_TESTS))
_rarely = st.sampled_from((False, False, False, True))
_CONSTANTS: tuple[Pred, ...] = (
    ALWAYS,
    Leaf("FALSE", frozenset(), lambda _row: False),
    _NULL,
)


@st.composite
def predicates(draw: st.DrawFn, columns: Sequence[Col]) -> Pred:
    """One to three tests, joined and negated."""
    parts = draw(st.lists(leaves(columns), min_size=1, max_size=3))
    parts = [Not(part) if draw(_rarely) else part for part in parts]
    whole = parts[0] if len(parts) == 1 else Both(draw(st.booleans()), tuple(parts))
    return Not(whole) if draw(_rarely) else whole
