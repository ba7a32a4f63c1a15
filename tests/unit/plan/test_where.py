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
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
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
        ("upper(s) = 'X'", ["UPPER(s)", "not supported", "Supported are"]),
        ("n + 1 = 2", ["n + 1"]),
        ("n IN (SELECT 1)", ["SELECT 1"]),
        ("EXISTS (SELECT 1)", ["EXISTS"]),
        ("CASE WHEN b THEN b END", ["CASE"]),
        ("CAST(n AS STRING) = 'x'", ["CAST(n AS STRING)"]),
        ("n = current_date()", ["CURRENT_DATE"]),
        ("n = ?", ["'?'"]),
        ("s LIKE 'x' ESCAPE '!'", ["ESCAPE"]),
        ("s NOT LIKE 'x' ESCAPE '!'", ["ESCAPE"]),
        ("s LIKE ANY ('x', 'y')", ["ANY"]),
        ("s RLIKE 'x'", ["RLIKE"]),
        ("n LIKE '1'", ["LIKE"]),
        ("s LIKE 'a\\\\b'", ["backslash escapes nothing"]),
        ("other.n = 1", ["other.n"]),
        ("n BETWEEN SYMMETRIC 2 AND 1", ["BETWEEN"]),
        ("n", ["'n' is not supported"]),
        ("5", ["'5' is not supported"]),
        ("nope = 1", ["'nope'", "id, n, m"]),
        ("n = id", ["'n' (int) and 'id' (bigint)"]),
        ("l = l", ["'l' (array<int>)"]),
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
