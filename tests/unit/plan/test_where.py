"""SQL text becomes a bound predicate, or an error that says which piece is wrong and what would do."""

import math
from typing import Any

import pytest

from lakelib.errors import InvalidInputError
from lakelib.model.predicate import (
    And,
    Compare,
    CompareColumns,
    Comparison,
    Computed,
    Constant,
    Fixed,
    Function,
    In,
    IsNull,
    Like,
    Matches,
    Not,
    Or,
    Predicate,
    Tested,
)
from lakelib.model.schema import Column, TableSchema
from lakelib.plan.where import COMMIT, bind_where, describe_predicate, parse_where

KINDS = {
    "id": "bigint",
    "n": "int",
    "m": "int",
    "t": "tinyint",
    "s": "string",
    "d": "decimal(5,2)",
    "x": "double",
    "b": "boolean",
    "dt": "date",
    "ts": "timestamp",
    "tn": "timestamp_ntz",
    "bin": "binary",
    "l": "array<int>",
    "a b": "string",
    "date": "date",
    "wide": "decimal(38,0)",
    "course": "struct<grade:int,`x y`:struct<z:double>>",
}
SCHEMA = TableSchema(
    id=1,
    columns=tuple(
        Column(id=number, name=name, type=kind, nullable=name != "id")
        for number, (name, kind) in enumerate(KINDS.items(), start=1)
    ),
)
DAY = 86_400_000_000


def column(name: str) -> Column:
    found = SCHEMA.find(name)
    assert found is not None
    return found


def compare(name: str, op: str, value: Any) -> Predicate:
    return Compare(column=column(name), op=Comparison(op), value=value)


def never(name: str) -> Predicate:
    return And(parts=(IsNull(column=column(name)), Constant(value=None)))


def always(name: str) -> Predicate:
    return Or(parts=(Not(part=IsNull(column=column(name))), Constant(value=None)))


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("n = 1", compare("n", "=", 1)),
        ("N == -1", compare("n", "=", -1)),
        ("1 < n", compare("n", ">", 1)),
        ("2 >= n", compare("n", "<=", 2)),
        ("(n) != (- 1)", compare("n", "<>", -1)),
        ("n = '12'", compare("n", "=", 12)),
        ("n = 1L", compare("n", "=", 1)),
        ("n = CAST('7' AS INT)", compare("n", "=", 7)),
        ("n = m", CompareColumns(left=column("n"), op=Comparison.EQ, right=column("m"))),
        ("b", compare("b", "=", True)),
        ("NOT b", Not(part=compare("b", "=", True))),
        ("b = FALSE", compare("b", "=", False)),
        ("b IS TRUE", And(parts=(Not(part=IsNull(column=column("b"))), compare("b", "=", True)))),
        ("TRUE", Constant(value=True)),
        ("NULL", Constant(value=None)),
        ("1 = 1", Constant(value=True)),
        ("1 <> 1", Constant(value=False)),
        ("n = NULL", Constant(value=None)),
        ("n IS NULL", IsNull(column=column("n"))),
        ("l IS NOT NULL", Not(part=IsNull(column=column("l")))),
        ("n <=> NULL", IsNull(column=column("n"))),
        ("n <=> 1", And(parts=(Not(part=IsNull(column=column("n"))), compare("n", "=", 1)))),
        ("n BETWEEN 1 AND 2", And(parts=(compare("n", ">=", 1), compare("n", "<=", 2)))),
        ("n IN (1, 2, 1)", In(column=column("n"), values=(1, 2))),
        ("n IN (1, NULL)", Or(parts=(In(column=column("n"), values=(1,)), Constant(value=None)))),
        ("n NOT IN (1)", Not(part=In(column=column("n"), values=(1,)))),
        ("s LIKE 'a%'", Like(column=column("s"), pattern="a%")),
        ("s NOT LIKE 'a%'", Not(part=Like(column=column("s"), pattern="a%"))),
        ('s = "xy"', compare("s", "=", "xy")),
        ("s = 'it''s'", compare("s", "=", "it's")),
        ("s = 'it\\'s'", compare("s", "=", "it's")),
        ("`A B` = ''", compare("a b", "=", "")),
        ("date = DATE '1970-01-02'", compare("date", "=", 1)),
        ("dt = '1970-01-02'", compare("dt", "=", 1)),
        ("dt <= '1970-01-02 12:00:00'", compare("dt", "<=", 1)),
        ("dt >= TIMESTAMP '1970-01-02 12:00:00'", compare("dt", ">=", 2)),
        ("ts = '1970-01-02'", compare("ts", "=", DAY)),
        ("ts < DATE '1970-01-02'", compare("ts", "<", DAY)),
        ("ts = TIMESTAMP '1970-01-02 01:00:00+01:00'", compare("ts", "=", DAY)),
        ("tn = TIMESTAMP '1970-01-02'", compare("tn", "=", DAY)),
        ("bin = X'00FF'", compare("bin", "=", b"\x00\xff")),
        ("bin = 'ü'", compare("bin", "=", "ü".encode())),
        ("d = 1.5", compare("d", "=", 150)),
        ("x = 1", compare("x", "=", 1.0)),
        ("x = 0.1", compare("x", "=", 0.1)),
        ("_commit > 3", Compare(column=COMMIT, op=Comparison.GT, value=3)),
        ("n = 1 AND n = 2 AND b", And(parts=(compare("n", "=", 1), compare("n", "=", 2), compare("b", "=", True)))),
    ],
)
def test_text_becomes_a_bound_predicate(text: str, predicate: Predicate) -> None:
    assert parse_where(text, SCHEMA) == predicate


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("n > 10.5", compare("n", ">=", 11)),
        ("n <= 10.5", compare("n", "<=", 10)),
        ("n < -10.5", compare("n", "<=", -11)),
        ("n = 10.5", never("n")),
        ("n <> 10.5", always("n")),
        ("id = 10.5", Constant(value=False)),
        ("id < 1e30", Constant(value=True)),
        ("n < 3000000000", always("n")),
        ("n > 3000000000", never("n")),
        ("n >= -3000000000", always("n")),
        ("t <= 127.5", always("t")),
        ("t > 127.5", never("t")),
        ("t < -128", compare("t", "<", -128)),
        ("t IN (1, 300)", In(column=column("t"), values=(1,))),
        ("t IN (300)", never("t")),
        ("d > 1.234", compare("d", ">=", 124)),
        ("d = 1.234", never("d")),
        ("d < 1000", always("d")),
        ("d <= 999.99", compare("d", "<=", 99_999)),
        ("n < CAST('NaN' AS DOUBLE)", always("n")),
        ("n > CAST('-Infinity' AS DOUBLE)", always("n")),
        ("n = CAST('Infinity' AS DOUBLE)", never("n")),
    ],
)
def test_numbers_that_a_column_cannot_hold_are_compared_by_meaning(text: str, predicate: Predicate) -> None:
    assert parse_where(text, SCHEMA) == predicate


def field(parent: Tested, name: str, kind: str) -> Computed:
    return Computed(function=Function.FIELD, arguments=(parent, Fixed(type="string", value=name)), type=kind)


def called(function: Function, kind: str, *arguments: Tested | Fixed) -> Computed:
    return Computed(function=function, arguments=arguments, type=kind)


def cast(tested: Tested, kind: str) -> Computed:
    return called(Function.CAST, kind, tested)


GRADE = field(column("course"), "grade", "int")


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("course.grade > 80", Compare(column=GRADE, op=Comparison.GT, value=80)),
        ("COURSE.Grade > 80.5", Compare(column=GRADE, op=Comparison.GE, value=81)),
        (
            "course.`x y`.z IS NULL",
            IsNull(column=field(field(column("course"), "x y", "struct<z:double>"), "z", "double")),
        ),
        ("n = id", CompareColumns(left=column("n"), op=Comparison.EQ, right=column("id"))),
        ("n < x", CompareColumns(left=cast(column("n"), "double"), op=Comparison.LT, right=column("x"))),
        (
            "d = n",
            CompareColumns(
                left=cast(column("d"), "decimal(12,2)"), op=Comparison.EQ, right=cast(column("n"), "decimal(12,2)")
            ),
        ),
        ("dt < ts", CompareColumns(left=cast(column("dt"), "timestamp"), op=Comparison.LT, right=column("ts"))),
        (
            "n IN (m, 3)",
            Or(
                parts=(
                    CompareColumns(left=column("n"), op=Comparison.EQ, right=column("m")),
                    compare("n", "=", 3),
                )
            ),
        ),
        ("1 IN (n, m)", Or(parts=(compare("n", "=", 1), compare("m", "=", 1)))),
        (
            "n + 1 = 2",
            Compare(
                column=called(Function.ADD, "int", column("n"), Fixed(type="int", value=1)), op=Comparison.EQ, value=2
            ),
        ),
        ("s LIKE 'a!%b' ESCAPE '!'", Like(column=column("s"), pattern="a\\%b")),
        ("s LIKE 'a\\\\%' ESCAPE '!'", Like(column=column("s"), pattern="a\\\\%")),
        ("s ILIKE 'A%'", Like(column=called(Function.LOWER, "string", column("s")), pattern="a%")),
        ("s NOT RLIKE 'a+'", Not(part=Matches(column=column("s"), pattern="a+"))),
        ("regexp(s, 'a+')", Matches(column=column("s"), pattern="a+")),
        ("startswith(s, '5%')", Like(column=column("s"), pattern="5\\%%")),
        ("isnotnull(n)", Not(part=IsNull(column=column("n")))),
        (
            "coalesce(b, FALSE)",
            Compare(
                column=called(Function.COALESCE, "boolean", column("b"), Fixed(type="boolean", value=False)),
                op=Comparison.EQ,
                value=True,
            ),
        ),
        ("2 > 1", Constant(value=True)),
        ("'b' <= 'a'", Constant(value=False)),
        ("CAST('nan' AS DOUBLE) > 5", Constant(value=True)),
        ("NULL + 1 = 2", Constant(value=None)),
        ("1 + 1 = n", compare("n", "=", 2)),
        ("n = 7 % 4 - 2 * 3", compare("n", "=", -3)),
        ("x = 1 / 4", compare("x", "=", 0.25)),
        ("dt = DATE '1970-01-01' + INTERVAL 1 DAY", compare("dt", "=", 1)),
        ("dt = DATE '1970-01-31' + INTERVAL '1' MONTH", compare("dt", "=", 58)),
        ("dt = date_add('1970-01-01', 2)", compare("dt", "=", 2)),
        ("dt = DATE '1970-01-03' - 1", compare("dt", "=", 1)),
        ("ts = TIMESTAMP '1970-01-02 01:00:00' - INTERVAL 1 HOUR", compare("ts", "=", DAY)),
    ],
)
def test_what_is_computed_becomes_a_bound_predicate(text: str, predicate: Predicate) -> None:
    assert parse_where(text, SCHEMA) == predicate


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("year(dt) = 1971", "dt >= '1971-01-01' AND dt < '1972-01-01'"),
        ("year(dt) <> 1971", "dt < '1971-01-01' OR dt >= '1972-01-01'"),
        ("NOT year(dt) > 1971", "NOT dt >= '1972-01-01'"),
        ("extract(YEAR FROM ts) <= 1971", "ts < '1972-01-01'"),
        ("year(ts) IN (1971, 1973)", "year(ts) = 1971 OR year(ts) = 1973"),
        ("CAST(ts AS DATE) = '1970-01-02'", "ts >= '1970-01-02' AND ts < '1970-01-03'"),
        ("to_date(tn) < '1970-01-02'", "tn < '1970-01-02'"),
        ("year(CAST(ts AS DATE)) < 1971", "ts < '1971-01-01'"),
        ("CAST(n AS BIGINT) > 2.5", "n > 2.5"),
        ("CAST(t AS INT) = 300", "t = 300"),
        ("year(dt) < 10000000", "TRUE"),
    ],
)
def test_what_is_said_of_a_year_or_a_day_is_said_of_the_column(text: str, same: str) -> None:
    expected = always("dt") if same == "TRUE" else parse_where(same, SCHEMA)
    assert parse_where(text, SCHEMA) == expected


def test_all_digits_of_a_long_decimal_count() -> None:
    schema = TableSchema(id=1, columns=(Column(id=1, name="d", type="decimal(38,0)"),))
    largest = 10**38 - 1
    for value in (largest, -largest):
        predicate = parse_where(f"d = {value}", schema)
        assert isinstance(predicate, Compare)
        assert predicate.value == value


def test_nan_is_written_as_text_or_cast() -> None:
    for text in ("x = 'NaN'", "x = CAST('nan' AS DOUBLE)"):
        predicate = parse_where(text, SCHEMA)
        assert isinstance(predicate, Compare)
        assert math.isnan(float(predicate.value))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("reverse(s) = 'X'", ["REVERSE(s)", "not supported", "Supported are"]),
        ("n + s = 2", ["n + s", "int + string"]),
        ("nope + 1 = 2", ["'nope'", "id, n, m"]),
        ("d % 2 = 1", ["d % 2", "of decimals"]),
        ("wide * wide = 1", ["wide * wide", "a decimal of 77 digits"]),
        ("wide = d", ["'wide' of type decimal(38,0)", "'d' of type decimal(5,2)"]),
        ("1 / 0 = n", ["division by zero"]),
        ("2147483647 + 1 = n", ["beyond 32 bits"]),
        ("n + INTERVAL 1 DAY = '2026-11-02'", ["to a day or a moment"]),
        ("dt + 1.5 = '2026-11-02'", ["as a whole number"]),
        ("dt = DATE '2026-11-01' + INTERVAL '1-2' YEAR TO MONTH", ["one unit"]),
        ("dt = DATE '9999-12-31' + INTERVAL 1 DAY", ["beyond the years"]),
        ("year(n) = 2026", ["YEAR", "it is of int"]),
        ("lower(n) = 'x'", ["LOWER(n)", "it is of int"]),
        ("isnan(n)", ["ISNAN(n)", "FLOAT"]),
        ("course.nope = 1", ["course.nope", "grade, x y"]),
        ("l.x = 1", ["l.x", "has no fields"]),
        ("n.x = 1", ["n.x", "has no fields"]),
        ("course = 1", ["struct<", "cannot be compared"]),
        ("l[0] = 1", ["l[0]"]),
        ("s = n", ["'s' of type string", "'n' of type int", "CAST"]),
        ("'1' = 1", ["'1' = 1"]),
        ("s RLIKE '(?=x)'", ["(?=x", "look-around"]),
        ("s RLIKE n", ["RLIKE"]),
        ("s ILIKE 'x' ESCAPE 'y'", ["a letter escapes"]),
        ("s LIKE 'x' ESCAPE '!!'", ["ESCAPE"]),
        ("s LIKE 'x!y' ESCAPE '!'", ["'!' escapes nothing"]),
        ("CAST(s AS TIMESTAMP) = ts", ["string is not cast to timestamp"]),
        ("1 + " * 200 + "n = 1", ["nested too deeply"]),
        ("n IN (SELECT 1)", ["SELECT 1"]),
        ("EXISTS (SELECT 1)", ["EXISTS"]),
        ("CASE WHEN b THEN b END", ["CASE"]),
        ("n = current_date()", ["CURRENT_DATE"]),
        ("n = ?", ["'?'"]),
        ("s LIKE ANY ('x', 'y')", ["ANY"]),
        ("n LIKE '1'", ["LIKE"]),
        ("s LIKE 'a\\\\b'", ["backslash escapes nothing"]),
        ("other.n = 1", ["'other'", "other.n"]),
        ("n BETWEEN SYMMETRIC 2 AND 1", ["BETWEEN"]),
        ("n", ["'n' is not supported"]),
        ("5", ["'5' is not supported"]),
        ("nope = 1", ["'nope'", "id, n, m"]),
        ("l = l", ["'l' of type array<int>"]),
        ("l = 1", ["'l' of type array<int>", "IS NULL"]),
        ("n = 'abc'", ["'n' of type int", "'abc'", "a number"]),
        ("dt = 'abc'", ["'dt' of type date", "'abc'", "2026-11-18"]),
        ("ts = '2026-11-18 10:00:00.1234567'", ["'ts' of type timestamp", ".1234567"]),
        ("tn = '2026-11-18 10:00:00Z'", ["'tn' of type timestamp_ntz", "without a zone"]),
        ("s = 1", ["'s' of type string", "1", "text"]),
        ("b = 1", ["'b' of type boolean", "true or false"]),
        ("n = TRUE", ["'n' of type int", "True"]),
        ("n = CAST('x' AS INT)", ["CAST('x' AS INT)", "whole number"]),
        ("n = 1; DROP TABLE t", ["is not SQL", "DROP"]),
        ("SELECT 1", ["is not SQL"]),
        ("n = 1 n", ["is not SQL"]),
        ("n = 'open", ["is not SQL"]),
        ("n =", ["is not SQL"]),
        ("", ["is empty"]),
        ("(" * 500 + "n = 1" + ")" * 500, ["nested too deeply"]),
        ("NOT " * 500 + "b", ["nested too deeply"]),
        ("n = 1 OR " * 200_000 + "b", ["characters"]),
    ],
)
def test_what_is_not_supported_is_named_with_the_remedy(text: str, pieces: list[str]) -> None:
    with pytest.raises(InvalidInputError) as error:
        parse_where(text, SCHEMA)
    assert [piece for piece in pieces if piece not in str(error.value)] == []
    assert error.value.remedy
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("text", ["\"s\" = 'x'", "\"S\" <> 'x'", 's in ("x", "N")'])
def test_double_quotes_around_a_columns_name_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"for the column, or .* for the text"):
        parse_where(text, SCHEMA)


def test_long_chains_and_lists_are_no_nesting() -> None:
    chain = parse_where(" OR ".join(f"n > {number}" for number in range(5_000)), SCHEMA)
    assert isinstance(chain, Or)
    assert len(chain.parts) == 5_000
    members = parse_where(f"n IN ({', '.join(map(str, range(5_000)))})", SCHEMA)
    assert isinstance(members, In)
    assert len(members.values) == 5_000


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("n = 1 OR n = 2 OR n = 1", In(column=column("n"), values=(1, 2))),
        ("(n = 1 OR n IN (2, 3)) OR n = 4", In(column=column("n"), values=(1, 2, 3, 4))),
        ("n = 1 OR b OR n = 2", Or(parts=(In(column=column("n"), values=(1, 2)), compare("b", "=", True)))),
        ("n = 1 OR m = 2", Or(parts=(compare("n", "=", 1), compare("m", "=", 2)))),
        ("n IN (1, NULL) OR n = 2", Or(parts=(In(column=column("n"), values=(1, 2)), Constant(value=None)))),
        ("n <> 1 AND n NOT IN (2, 3)", Not(part=In(column=column("n"), values=(1, 2, 3)))),
        (
            "n <> 1 AND b AND NOT (n = 2)",
            And(parts=(Not(part=In(column=column("n"), values=(1, 2))), compare("b", "=", True))),
        ),
        ("n <> 1 OR n <> 2", Or(parts=(compare("n", "<>", 1), compare("n", "<>", 2)))),
    ],
)
def test_chains_of_equalities_of_one_column_become_a_list(text: str, predicate: Predicate) -> None:
    assert parse_where(text, SCHEMA) == predicate


def test_a_commit_may_be_unknown() -> None:
    """It is NULL in staged rows: not TRUE, however large the number."""
    assert parse_where("_commit < 1e30", SCHEMA) == Or(parts=(Not(part=IsNull(column=COMMIT)), Constant(value=None)))


def test_text_none_and_predicates_can_be_bound() -> None:
    predicate = parse_where("n = 1 AND _commit > 3", SCHEMA)
    assert bind_where("n = 1 AND _commit > 3", SCHEMA) == predicate
    assert bind_where(predicate, SCHEMA) is predicate
    assert bind_where(None, SCHEMA) is None


def test_a_predicate_on_columns_of_another_table_is_refused() -> None:
    strange = IsNull(column=Column(id=99, name="z", type="int"))
    with pytest.raises(InvalidInputError, match="z IS NULL"):
        bind_where(strange, SCHEMA)
    with pytest.raises(InvalidInputError, match="not dict"):
        bind_where({"n": 1}, SCHEMA)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("n=1 and (s like 'a%' or not b)", "n = 1 AND (s LIKE 'a%' OR NOT (b = TRUE))"),
        ("dt in ('2026-11-18')", "dt IN (DATE '2026-11-18')"),
        ("`a b` = 'it''s' and d is not null", "`a b` = 'it\\'s' AND d IS NOT NULL"),
        ("ts > '2026-11-18'", "ts > TIMESTAMP '2026-11-18 00:00:00+00:00'"),
    ],
)
def test_a_predicate_is_described_as_sql(text: str, described: str) -> None:
    assert describe_predicate(parse_where(text, SCHEMA)) == described


def test_a_column_named_like_a_word_of_sql_is_quoted() -> None:
    schema = TableSchema(id=1, columns=(Column(id=1, name="true", type="int"),))
    predicate = parse_where("`true` = 1", schema)
    assert parse_where(describe_predicate(predicate), schema) == predicate


def test_a_long_list_is_described_in_short() -> None:
    members = parse_where(f"n IN ({', '.join(map(str, range(1_000)))})", SCHEMA)
    assert describe_predicate(members).endswith("19, … (1000 values))")
