"""Random conditions as people and programs write them, each with what plain Python makes of it, row by row."""

import calendar
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from lakelib.model.schema import Column, TableSchema
from lakelib.rows.values import INTEGER_BITS

Row = dict[str, Any]
Eval = Callable[[Row], Any]

TYPES = {
    "t": "tinyint",
    "n": "int",
    "m": "int",
    "g": "bigint",
    "d": "decimal(6,2)",
    "e": "decimal(9,3)",
    "x": "double",
    "f": "float",
    "s": "string",
    "u": "string",
    "b": "boolean",
    "dt": "date",
    "ts": "timestamp",
    "c": "struct<i:int,`a b`:struct<s:string>>",
}
SCHEMA = TableSchema(
    id=1, columns=tuple(Column(id=place, name=name, type=kind) for place, (name, kind) in enumerate(TYPES.items(), 1))
)
TEXTS = [
    "",
    "a",
    "Ab",
    "a%",
    "a_b",
    "12",
    " 7 ",
    "-3",
    "x9",
    "1.5",
    "2026-02-28",
    "2026-02-30",
    "ÄÖ",
    "\u0130x",
    "ΑΣ",
    "a\nb",
    "true",
]
_DAYS = [date(1582, 10, 4), date(1969, 12, 31), date(2024, 2, 29), date(2026, 1, 1), date(2026, 11, 18)]
_MOMENTS = [
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 11, 18, 10, 30, 5, 250000, UTC),
]
_INNER = st.none() | st.fixed_dictionaries({"s": st.none() | st.sampled_from(TEXTS)})
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "t": st.sampled_from([-128, -1, 0, 1, 5, 127]),
    "n": st.sampled_from([-(2**31), -7, -1, 0, 1, 2, 3, 2**31 - 1]),
    "m": st.sampled_from([-(2**31), -3, 0, 1, 2, 10, 2**31 - 1]),
    "g": st.sampled_from([-(2**63), -1, 0, 1, 2, 3_037_000_500, 2**53 + 1, 2**63 - 1]),
    "d": st.sampled_from([Decimal(each) for each in ("-9999.99", "-1.00", "0.00", "0.50", "1.00", "2.25", "9999.99")]),
    "e": st.sampled_from([Decimal(each) for each in ("-999999.999", "0.000", "0.500", "1.001", "2.250")]),
    "x": st.sampled_from([math.nan, math.inf, -math.inf, -2.5, -0.0, 0.0, 0.1, 1.0, 3.0, 1e300]),
    "f": st.sampled_from([math.nan, -math.inf, -0.5, 0.0, 0.5, 1.0, 3.0]),
    "s": st.sampled_from(TEXTS),
    "u": st.sampled_from(TEXTS),
    "b": st.booleans(),
    "dt": st.sampled_from(_DAYS),
    "ts": st.sampled_from(_MOMENTS),
    "c": st.fixed_dictionaries({"i": st.none() | st.sampled_from([-1, 0, 80, 2**31 - 1]), "a b": _INNER}),
}
rows_of_table = st.lists(
    st.fixed_dictionaries({name: st.none() | VALUES[name] for name in TYPES}), min_size=1, max_size=8
)


class FailedError(Exception):
    """Spark refuses the row."""


@dataclass(frozen=True)
class Piece:
    text: str
    type: str
    of: Eval
    """The value of a row; None is NULL. Raises FailedError."""


def _leaf(name: str) -> Piece:
    return Piece(name, TYPES[name], operator.itemgetter(name))


_GRADE = Piece("c.i", "int", lambda row: None if row["c"] is None else row["c"]["i"])
_DEEP = Piece(
    "c.`a b`.s",
    "string",
    lambda row: None if row["c"] is None or row["c"]["a b"] is None else row["c"]["a b"]["s"],
)


def _fixed(text: str, kind: str, value: Any) -> Piece:
    return Piece(text, kind, lambda row: value)


WHOLE = tuple(INTEGER_BITS)


def _digits(piece: Piece) -> tuple[int, int]:
    found = re.match(r"decimal\((\d+),(\d+)\)", piece.type)
    if found:
        return int(found[1]), int(found[2])
    if re.fullmatch(r"-?\d+", piece.text):
        return len(piece.text.lstrip("-")), 0
    return {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}[piece.type], 0


def _checked(value: int, kind: str) -> int:
    bits = INTEGER_BITS[kind]
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise FailedError(kind)
    return value


def _strict(compute: Callable[..., Any], *pieces: Piece) -> Eval:
    """NULL where an argument is: those after it are not asked. One that fails fails all."""

    def of(row: Row) -> Any:
        values: list[Any] = []
        for piece in pieces:
            values.append(piece.of(row))
            if values[-1] is None:
                return None
        return compute(*values)

    return of


def arithmetic(op: str, left: Piece, right: Piece) -> Piece | None:
    """None for what is not supported."""
    text = f"({left.text} {op} {right.text})"
    kinds = (left.type, right.type)
    if any(kind.startswith("decimal") for kind in kinds) and not {*kinds} & {"float", "double"}:
        (p, s), (q, t) = _digits(left), _digits(right)
        if op in "+-":
            scale = max(s, t)
            digits = max(p - s, q - t) + 1 + scale
        elif op == "*":
            scale, digits = s + t, p + q + 1
        elif op == "/":
            return _quotient(text, left, right)
        else:
            return None
        exact = Context(prec=90)
        compute = {"+": exact.add, "-": exact.subtract, "*": exact.multiply}[op]
        found = Piece(
            text, f"decimal({digits},{scale})", _strict(lambda a, b: compute(Decimal(a), Decimal(b)), left, right)
        )
        return found if digits <= 38 else None
    if op != "/" and {*kinds} <= {*WHOLE}:
        kind = max(kinds, key=WHOLE.index)
        compute_whole = lambda a, b: _checked(_whole(op, a, b), kind)  # noqa: E731
        return Piece(text, kind, _divisor_first(op, compute_whole, left, right))
    if op != "/" and {*kinds} == {"float"}:
        return None  # rounded after each step
    return Piece(text, "double", _divisor_first(op, lambda a, b: _float(op, float(a), float(b)), left, right))


def _quotient(text: str, left: Piece, right: Piece) -> Piece:
    (p, s), (q, t) = _digits(left), _digits(right)
    places, whole = max(6, s + q + 1), p - s + t
    if whole + places > 38:
        places = max(38 - whole, 6)
    digits = min(whole + places, 38)
    exact = Context(prec=200, rounding=ROUND_HALF_UP)

    def divide(divisor: Any, divided: Any) -> Any:
        if not divisor:
            raise FailedError("zero")
        above, below = Fraction(divided), Fraction(divisor)
        scaled = abs(above / below) * 10**38
        units = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
        found = Decimal(units).scaleb(-38, exact).quantize(Decimal(1).scaleb(-places), context=exact)
        if found >= Decimal(10) ** (digits - places):
            raise FailedError("room")
        return -found if (above < 0) != (below < 0) else found

    return Piece(text, f"decimal({digits},{places})", _strict(divide, right, left))


def _divisor_first(op: str, compute: Callable[[Any, Any], Any], left: Piece, right: Piece) -> Eval:
    """Spark looks at what it divides by before it looks at what is divided."""
    return _strict(lambda a, b: compute(b, a), right, left) if op in "/%" else _strict(compute, left, right)


def _whole(op: str, a: int, b: int) -> int:
    if op == "%":
        if b == 0:
            raise FailedError("zero")
        return int(math.copysign(1, a)) * (abs(a) % abs(b))
    return {"+": operator.add, "-": operator.sub, "*": operator.mul}[op](a, b)  # type: ignore[no-any-return]


def _float(op: str, a: float, b: float) -> float:
    if op in "/%":
        if b == 0:
            raise FailedError("zero")
        if op == "/":
            return a / b if not math.isinf(a) or not math.isinf(b) else math.nan
        return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)
    return {"+": operator.add, "-": operator.sub, "*": operator.mul}[op](a, b)  # type: ignore[no-any-return]


def _cast(piece: Piece, kind: str, *, tried: bool) -> Piece:
    word = "TRY_CAST" if tried else "CAST"

    def of(row: Row) -> Any:
        value = piece.of(row)
        if value is None:
            return None
        try:
            return _converted(value, kind)
        except FailedError:
            if tried:
                return None
            raise

    return Piece(f"{word}({piece.text} AS {kind.upper()})", kind, of)


def _converted(value: Any, kind: str) -> Any:
    if isinstance(value, str):
        value = value.strip("".join(map(chr, range(33))))
    match kind:
        case "tinyint" | "smallint" | "int" | "bigint":
            if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]+", value):
                raise FailedError(value)
            if isinstance(value, float) and not math.isfinite(value):
                raise FailedError(value)
            return _checked(int(value), kind)
        case "double":
            if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", value):
                raise FailedError(value)
            return float(value)
        case "string":
            return str(value).lower() if isinstance(value, bool) else str(value)
        case "date":
            if isinstance(value, datetime):
                return value.date()
            try:
                return date.fromisoformat(value)
            except ValueError:
                raise FailedError(value) from None
        case "timestamp":
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case "boolean":
            if isinstance(value, str) and value.lower() not in (
                "true",
                "1",
                "t",
                "y",
                "yes",
                "false",
                "0",
                "f",
                "n",
                "no",
            ):
                raise FailedError(value)
            return value.lower() in ("true", "1", "t", "y", "yes") if isinstance(value, str) else value != 0
    precision, scale = map(int, re.findall(r"\d+", kind))
    found = Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=90))
    if abs(found) >= 10 ** (precision - scale):
        raise FailedError(value)
    return found


_CASTS = [
    *[
        (name, kind)
        for name in "tnmg"
        for kind in (
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "double",
            "string",
            "decimal(12,2)",
            "decimal(3,1)",
            "boolean",
        )
    ],
    *[(name, kind) for name in "xf" for kind in ("tinyint", "int", "bigint", "double")],
    *[(name, kind) for name in "de" for kind in ("tinyint", "bigint", "double", "decimal(4,1)", "decimal(12,4)")],
    *[(name, kind) for name in "su" for kind in ("int", "bigint", "date", "boolean", "string")],
    ("b", "int"),
    ("b", "string"),
    ("dt", "timestamp"),
    ("dt", "string"),
    ("ts", "date"),
]
_PARTS: dict[str, Callable[[Any], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "dayofyear": lambda day: day.timetuple().tm_yday,
    "dayofweek": lambda day: day.isoweekday() % 7 + 1,
    "weekday": lambda day: day.weekday(),
    "weekofyear": lambda day: day.isocalendar()[1],
}
_TIMES: dict[str, Callable[[Any], int]] = {
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "second": lambda moment: moment.second,
}
_TEXT_FUNCTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "lower": ("string", str.lower),
    "upper": ("string", str.upper),
    "trim": ("string", lambda text: text.strip(" ")),
    "length": ("int", len),
}

_columns = [*(_leaf(name) for name in ("t", "n", "m", "g", "d", "e", "x", "f")), _GRADE]
_literals = [
    _fixed("1", "int", 1),
    _fixed("0", "int", 0),
    _fixed("2", "int", 2),
    _fixed("100", "int", 100),
    _fixed("2147483647", "int", 2**31 - 1),
    _fixed("1.5", "decimal(2,1)", Decimal("1.5")),
    _fixed("5e-1", "double", 0.5),
    _fixed("3L", "bigint", 3),
]
_numbers = st.sampled_from(_columns) | st.sampled_from(_literals)
_texts = st.sampled_from([_leaf("s"), _leaf("u"), _DEEP])


@st.composite
def numbers(draw: st.DrawFn) -> Piece:
    kind = draw(
        st.sampled_from(
            (
                "plain",
                "arithmetic",
                "arithmetic",
                "nested",
                "negated",
                "abs",
                "cast",
                "part",
                "time",
                "length",
                "coalesce",
            )
        )
    )
    match kind:
        case "arithmetic":
            found = arithmetic(draw(st.sampled_from("+-*/%")), draw(_numbers), draw(_numbers))
            return found or draw(_numbers)
        case "nested":
            inner = arithmetic(draw(st.sampled_from("+-*/%")), draw(_numbers), draw(_numbers)) or draw(_numbers)
            return arithmetic(draw(st.sampled_from("+-*/%")), inner, draw(_numbers)) or inner
        case "negated" | "abs":
            piece = draw(_numbers)
            if piece.type in ("float", "double") or piece.type.startswith("decimal"):
                compute: Callable[[Any], Any] = operator.neg if kind == "negated" else abs
            else:
                compute = lambda value: _checked(-value if kind == "negated" else abs(value), piece.type)  # noqa: E731
            return Piece(
                f"(- {piece.text})" if kind == "negated" else f"abs({piece.text})", piece.type, _strict(compute, piece)
            )
        case "cast":
            name, wanted = draw(
                st.sampled_from(
                    [
                        each
                        for each in _CASTS
                        if each[1] in ("tinyint", "smallint", "int", "bigint", "double")
                        or each[1].startswith("decimal")
                    ]
                )
            )
            return _cast(_leaf(name), wanted, tried=draw(st.booleans()))
        case "part":
            name, of_day = draw(st.sampled_from(list(_PARTS.items())))
            piece = _leaf(draw(st.sampled_from(("dt", "ts"))))
            return Piece(f"{name}({piece.text})", "int", _strict(of_day, piece))
        case "time":
            name, of_time = draw(st.sampled_from(list(_TIMES.items())))
            return Piece(f"{name}(ts)", "int", _strict(of_time, _leaf("ts")))
        case "length":
            return _called("length", draw(_texts))
        case "coalesce":
            pair = (
                _leaf(draw(st.sampled_from("nm"))),
                draw(st.sampled_from([_GRADE, _fixed("0", "int", 0), _leaf("m")])),
            )

            def first(row: Row) -> Any:
                value = pair[0].of(row)
                return pair[1].of(row) if value is None else value

            return Piece(f"coalesce({pair[0].text}, {pair[1].text})", "int", first)
    return draw(_numbers)


def _called(name: str, piece: Piece) -> Piece:
    kind, compute = _TEXT_FUNCTIONS[name]
    return Piece(f"{name}({piece.text})", kind, _strict(compute, piece))


@st.composite
def texts(draw: st.DrawFn) -> Piece:
    kind = draw(st.sampled_from(("plain", "called", "cast")))
    if kind == "called":
        return _called(draw(st.sampled_from(("lower", "upper", "trim"))), draw(_texts))
    if kind == "cast":
        return _cast(_leaf(draw(st.sampled_from(("n", "b", "dt")))), "string", tried=False)
    return draw(_texts)


@st.composite
def days(draw: st.DrawFn) -> Piece:
    kind = draw(st.sampled_from(("date", "moment", "cast", "read", "later")))
    match kind:
        case "date":
            return _leaf("dt")
        case "moment":
            return _leaf("ts")
        case "cast":
            return draw(
                st.sampled_from([_cast(_leaf("ts"), "date", tried=False), _cast(_leaf("dt"), "timestamp", tried=False)])
            )
        case "later":
            return _later(
                draw(st.sampled_from(("dt", "ts"))),
                draw(st.sampled_from("+-")),
                draw(st.integers(0, 40)),
                draw(st.sampled_from(("DAY", "WEEK", "MONTH", "YEAR", "HOUR"))),
            )
    return _cast(_leaf(draw(st.sampled_from("su"))), "date", tried=draw(st.booleans()))


def _later(name: str, sign: str, count: int, unit: str) -> Piece:
    number = count if sign == "+" else -count
    months = {"MONTH": 1, "YEAR": 12}.get(unit)

    def moved(value: Any) -> Any:
        if unit == "HOUR" and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        if months is None:
            return value + timedelta(**{f"{unit.lower()}s": number})
        year, month = divmod(value.year * 12 + value.month - 1 + number * months, 12)
        return value.replace(year=year, month=month + 1, day=min(value.day, calendar.monthrange(year, month + 1)[1]))

    kind = "timestamp" if unit == "HOUR" else TYPES[name]
    return Piece(f"({name} {sign} INTERVAL {count} {unit})", kind, _strict(moved, _leaf(name)))


OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def compared(left: Any, op: str, right: Any) -> bool:
    low, high = (_rank(each) for each in (left, right))
    return {
        "=": low == high,
        "<>": low != high,
        "<": low < high,
        "<=": low <= high,
        ">": low > high,
        ">=": low >= high,
    }[op]


def _rank(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return (0, value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value


def comparison(left: Piece, op: str, right: Piece) -> Piece | None:
    """None where the types are not compared."""
    kinds = {left.type, right.type}
    if kinds & {"float", "double"}:
        to_float: Callable[[Any], Any] = float
    elif any(kind.startswith("decimal") for kind in kinds):
        (p, s), (q, t) = _digits(left), _digits(right)
        is_literal = any(re.fullmatch(r"-?[\d.]+", each.text) for each in (left, right))
        if max(p - s, q - t) + max(s, t) > 38 and not is_literal:
            return None
        to_float = lambda value: value  # noqa: E731
    else:
        to_float = lambda value: value  # noqa: E731
    return Piece(
        f"{left.text} {op} {right.text}",
        "boolean",
        _strict(lambda a, b: compared(to_float(a), op, to_float(b)), left, right),
    )


def _like(text: str, pattern: str, escape: str) -> bool:
    rest = iter(pattern)
    wild = {"%": ".*", "_": "."}
    pieces = [re.escape(next(rest)) if each == escape else wild.get(each, re.escape(each)) for each in rest]
    return re.fullmatch("".join(pieces), text, re.DOTALL) is not None


PATTERNS = [
    "a.*",
    "^a",
    "b$",
    "^$",
    "[a-c]+b?",
    "[^a]",
    "(a|x)9?",
    r"\\d+",
    r"\\s",
    r"a\\.b",
    "x{1,2}",
    "(?i)AB",
    r"[\\w%]_",
    "Ä",
]


@st.composite
def leaves(draw: st.DrawFn) -> Piece:
    kind = draw(
        st.sampled_from(
            (
                "numbers",
                "numbers",
                "numbers",
                "texts",
                "days",
                "like",
                "rlike",
                "null",
                "in",
                "nan",
                "boolean",
                "between",
            )
        )
    )
    op = draw(st.sampled_from(OPERATORS))
    match kind:
        case "numbers":
            return comparison(draw(numbers()), op, draw(numbers())) or _fixed("b", "boolean", None)
        case "texts":
            found = comparison(
                draw(texts()),
                op,
                draw(texts() | st.sampled_from([_fixed("'a'", "string", "a"), _fixed("'12'", "string", "12")])),
            )
        case "days":
            fixed = [
                _fixed("DATE '2026-01-01'", "date", date(2026, 1, 1)),
                _fixed("(DATE '2026-02-01' - INTERVAL 1 MONTH)", "date", date(2026, 1, 1)),
            ]
            found = comparison(draw(days()), op, draw(days() | st.sampled_from(fixed)))
        case "like":
            piece, negated, ignoring = draw(texts()), draw(st.booleans()), draw(st.booleans())
            pattern = "".join(draw(st.lists(st.sampled_from(["%", "_", "a", "B", "!%", "!_", "!!", "Ä"]), max_size=4)))
            word = "ILIKE" if ignoring else "LIKE"
            return Piece(
                f"{piece.text} {'NOT ' if negated else ''}{word} '{pattern}' ESCAPE '!'",
                "boolean",
                _strict(
                    lambda text: (
                        _like(text.lower() if ignoring else text, pattern.lower() if ignoring else pattern, "!")
                        != negated
                    ),
                    piece,
                ),
            )
        case "rlike":
            piece, pattern = draw(texts()), draw(st.sampled_from(PATTERNS))
            plain = pattern.replace("\\\\", "\\").replace(r"\w", "[a-zA-Z0-9_]").replace("[[a-zA-Z0-9_]", "[a-zA-Z0-9_")
            return Piece(
                f"{piece.text} RLIKE '{pattern}'",
                "boolean",
                _strict(lambda text: re.search(plain, text) is not None, piece),
            )
        case "null":
            piece = draw(numbers() | texts() | days())
            return Piece(f"{piece.text} IS NULL", "boolean", lambda row: piece.of(row) is None)
        case "in":
            piece, others = (
                _leaf("n"),
                draw(
                    st.lists(
                        st.sampled_from([_leaf("m"), _GRADE, _fixed("1", "int", 1), _fixed("NULL", "int", None)]),
                        min_size=1,
                        max_size=3,
                    )
                ),
            )

            def within(row: Row) -> bool | None:
                value, values = piece.of(row), [each.of(row) for each in others]
                return None if value is None else True if value in values else None if None in values else False

            return Piece(f"n IN ({', '.join(each.text for each in others)})", "boolean", within)
        case "nan":
            name = draw(st.sampled_from("xf"))
            return Piece(f"isnan({name})", "boolean", lambda row: row[name] is not None and math.isnan(row[name]))
        case "between":
            low, high = draw(_numbers), draw(_numbers)
            both = [comparison(_leaf("n"), ">=", low), comparison(_leaf("n"), "<=", high)]
            assert both[0] is not None
            assert both[1] is not None
            return Piece(f"n BETWEEN {low.text} AND {high.text}", "boolean", _joined(both[0], both[1], False))
        case _:
            return draw(
                st.sampled_from(
                    [_leaf("b"), _cast(_leaf("n"), "boolean", tried=False), _cast(_leaf("s"), "boolean", tried=True)]
                )
            )
    assert found is not None
    return found


def _joined(left: Piece, right: Piece, decisive: bool) -> Eval:
    """AND, which FALSE decides, or OR: the right side is not asked of a row that is decided."""

    def of(row: Row) -> bool | None:
        first = left.of(row)
        if first is decisive:
            return decisive
        second = right.of(row)
        return decisive if second is decisive else None if None in (first, second) else not decisive

    return of


def _negated(piece: Piece) -> Piece:
    return Piece(f"NOT ({piece.text})", "boolean", _strict(operator.not_, piece))


def _pair(word: str, left: Piece, right: Piece) -> Piece:
    return Piece(f"({left.text}) {word} ({right.text})", "boolean", _joined(left, right, word == "OR"))


conditions: st.SearchStrategy[Piece] = st.recursive(
    leaves(),
    lambda inner: st.builds(_negated, inner) | st.builds(_pair, st.sampled_from(("AND", "OR")), inner, inner),
    max_leaves=4,
)
