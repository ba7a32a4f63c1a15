"""What is carried out without Spark has the values, the types and the errors that Spark gives it, on hard rows.

This is the contract with DuckDB at the version that is installed: all that is translated is in the
lists of `expressions`.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlglot import exp, parse_one

from lakelib import InvalidInputError
from lakelib.errors import OnlySparkError
from lakelib.local.database import opened_database
from lakelib.model.options import MIB
from lakelib.plan.declare import declare_schema
from lakelib.plan.local_query import TRANSLATED, translate_query
from lakelib.rows.types import plain_schema, type_text
from lakelib.work.spark.types import arrow_schema_of, spark_schema_of
from tests.integration.local.expressions import (
    AGGREGATED,
    IN_ORDER,
    QUERIES,
    REFUSED,
    SAME,
    UNLIKE,
    WINDOWED,
    WRONG,
)

KEY = "2026-11-18"
COLUMNS = declare_schema(
    "k INT, t TINYINT, h SMALLINT, i INT, b BIGINT, d DECIMAL(10, 2), w DECIMAL(28, 6), r FLOAT, x DOUBLE, s STRING,"
    " whole STRING, num STRING, flag STRING, dd STRING, tt STRING, day DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, f BOOLEAN,"
    " bin BINARY, arr ARRAY<INT>, st STRUCT<a: INT, at: TIMESTAMP>, mp MAP<STRING, DECIMAL(5, 1)>"
)


def _moment(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


VALUES: dict[str, list[Any]] = {
    "t": [1, -7, 100, 0],
    "h": [2, -32000, 7, 0],
    "i": [3, -2147483647, 2147483000, 0],
    "b": [4, -9007199254740993, 9007199254740993, 0],
    "d": [Decimal("1.01"), Decimal("-99999999.99"), Decimal("2.35"), Decimal("0.00")],
    "w": [Decimal("1.500000"), Decimal("-9999999999999999999999.999999"), Decimal("0.000001"), Decimal("-0.500000")],
    "r": [1.5, -2.25, float("inf"), 0.0],
    "x": [1.5, float("nan"), -0.0, 1e300],
    "s": ["Open", "  grün \u00a0", "", "ÄÖÜ ñ Жж Ωω 👍 n\u0000l"],
    "whole": ["1", "-12", "+7", "007"],
    "num": ["1.005", "-1.005", "+0.5", "12"],
    "flag": ["true", "FALSE", "False", "True"],
    "dd": ["2026-11-18", "0001-01-01", "1582-10-10", "9999-12-31"],
    "tt": ["2026-11-18 23:59:59.999999", "1969-12-31T23:59:59.5", "2026-11-18T10:00:00Z", "1900-01-01"],
    "day": [date(2026, 11, 18), date(1, 1, 1), date(1582, 10, 10), date(9999, 12, 31)],
    "ts": [
        _moment(2026, 11, 18, 23, 59, 59, 999999),
        _moment(1969, 12, 31, 23, 59, 59, 500000),
        _moment(1, 1, 1),
        _moment(9999, 12, 31, 1, 2, 3),
    ],
    "f": [True, False, True, False],
    "bin": [b"\x00\xff", b"", b"a", b"\x80"],
    "arr": [[1, None], [], [2], [3]],
    "st": [{"a": 1, "at": _moment(2026, 1, 1)}, {"a": None, "at": None}, {"a": 2, "at": None}, {"a": 3, "at": None}],
    "mp": [[("a", Decimal("1.5"))], [], [("b", None)], [("c", Decimal("-2.5"))]],
}
VALUES["tn"] = [each.replace(tzinfo=None) for each in VALUES["ts"]]
ROWS = pa.table(
    {"k": [0, 1, 2, 3, 4], **{name: [*values, None] for name, values in VALUES.items()}},
    schema=plain_schema([column for column in COLUMNS if column.name == "k" or column.name in VALUES]),
).select([column.name for column in COLUMNS])


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """As the sessions of jobs are."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.createDataFrame(ROWS, schema=spark_schema_of(ROWS.schema)).createOrReplaceTempView("source")
    return session


def _listed(text: str) -> list[str]:
    return [each.strip() for line in text.strip().splitlines() for each in line.split("; ")]


def _batches(expressions: list[str]) -> list[list[str]]:
    return [expressions[start : start + 20] for start in range(0, len(expressions), 20)]


def _on_spark(session: SparkSession, query: str) -> pa.Table:
    frame = session.sql(query, args={"partition": KEY})
    return frame.toArrow().cast(arrow_schema_of(frame.schema))


def _locally(query: str) -> pa.Table:
    translated = translate_query(query, {"source": [(column.name, column.type) for column in COLUMNS]}, KEY)
    with opened_database(256 * MIB, 2) as database:
        database.load("source", COLUMNS, ROWS.to_batches())
        rows = database.rows(translated)
        return pa.Table.from_batches(rows.batches(), rows.schema)


def _told(table: pa.Table, *, in_order: bool = False) -> Any:
    """Types and rows, each value with its sign and kind."""
    kinds = {field.name: type_text(field.type) for field in table.schema}
    rows = [tuple(map(repr, row.values())) for row in table.to_pylist()]
    return kinds, rows if in_order else sorted(rows)


def _compare(session: SparkSession, query: str, *, in_order: bool = False) -> None:
    assert _told(_locally(query), in_order=in_order) == _told(_on_spark(session, query), in_order=in_order), query


def _select(expressions: Sequence[str], rest: str) -> str:
    chosen = ", ".join(f"{each} AS e{place}" for place, each in enumerate(expressions))
    return f"SELECT {chosen} FROM source{rest}"


@pytest.mark.parametrize("expressions", _batches(_listed(SAME)), ids=lambda each: each[0])
def test_a_value_is_the_same(expressions: Sequence[str], session: SparkSession) -> None:
    query = _select(["k", *expressions], "")
    ours, theirs = _locally(query), _on_spark(session, query)
    assert [type_text(each.type) for each in ours.schema] == [type_text(each.type) for each in theirs.schema]
    for place, expression in enumerate(expressions, start=1):
        pair = [table.select(["e0", f"e{place}"]) for table in (ours, theirs)]
        assert _told(pair[0]) == _told(pair[1]), expression


@pytest.mark.parametrize("rest", ["", " WHERE i > 0", " WHERE k > 100"])
def test_an_aggregate_is_the_same(rest: str, session: SparkSession) -> None:
    _compare(session, _select(_listed(AGGREGATED), rest))


def test_an_aggregate_of_groups_is_the_same(session: SparkSession) -> None:
    _compare(session, _select(["f", *_listed(AGGREGATED)], " GROUP BY f"))


def test_a_window_is_the_same(session: SparkSession) -> None:
    _compare(session, _select(["k", *_listed(WINDOWED)], ""))


@pytest.mark.parametrize("query", QUERIES.strip().splitlines())
def test_a_query_has_the_same_rows(query: str, session: SparkSession) -> None:
    _compare(session, query)


@pytest.mark.parametrize("query", IN_ORDER.strip().splitlines())
def test_rows_come_in_the_same_order(query: str, session: SparkSession) -> None:
    _compare(session, query, in_order=True)


@pytest.mark.parametrize("expression", _listed(WRONG))
def test_a_wrong_value_is_refused_by_both(expression: str, session: SparkSession) -> None:
    query = _select([expression], "")
    with pytest.raises(InvalidInputError) as refused:
        _locally(query)
    assert refused.value.kind == "transform_failed"
    with pytest.raises(
        Exception, match=r"ARITHMETIC_OVERFLOW|BY_ZERO|CAST_|OUT_OF_RANGE|SCALAR_SUBQUERY|INVALID_TYPED"
    ):
        _on_spark(session, query)


@pytest.mark.parametrize("expression", _listed(UNLIKE))
def test_a_value_that_the_engines_take_differently_is_for_spark(expression: str) -> None:
    with pytest.raises(OnlySparkError):
        _locally(_select([expression], ""))


@pytest.mark.parametrize("expression", _listed(REFUSED))
def test_what_is_not_the_same_is_refused_before_a_row_is_read(expression: str) -> None:
    with pytest.raises(OnlySparkError):
        translate_query(_select([expression], ""), {"source": [(column.name, column.type) for column in COLUMNS]}, KEY)


def test_every_letter_has_the_same_case_or_is_for_spark(session: SparkSession) -> None:
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    rows = pa.table({"c": letters})
    frame = session.createDataFrame(rows).selectExpr("lower(c) AS l", "upper(c) AS u").toArrow()
    for function, theirs in (("lower", frame["l"]), ("upper", frame["u"])):
        sql = translate_query(f"SELECT {function}(c) AS c FROM source", {"source": [("c", "string")]}, KEY).sql
        unlike = sql.partition("THEN error(")[0].partition("WHEN ")[2]
        with opened_database(256 * MIB, 2) as database:
            database.load("source", declare_schema("c STRING"), rows.to_batches())
            query = f'SELECT CASE WHEN {unlike} THEN NULL ELSE {function}("c") END FROM "source" AS r1'
            ours = [value for batch in database.batches(query) for value in batch.column(0).to_pylist()]
        differing = [
            letter
            for letter, one, other in zip(letters, ours, theirs.to_pylist(), strict=True)
            if one not in (None, other)
        ]
        assert differing == []
        assert sum(one is None for one in ours) < 600


def test_all_that_is_translated_is_tried_here() -> None:
    tried = {
        type(node)
        for text in (*_listed(SAME), *_listed(AGGREGATED), *_listed(WINDOWED))
        for node in parse_one(f"SELECT {text}", read="spark").walk()
        if isinstance(node, exp.Expr)
    }
    assert TRANSLATED.keys() <= tried
