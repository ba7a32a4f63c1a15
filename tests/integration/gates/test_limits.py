"""Promises of limits: a check that would take for ever errs, and nobody waits for it; all others are judged."""

import threading
import time

import psutil
import pyarrow as pa
import pytest

from lakelib.gates.apart import Apart, CheckError
from lakelib.gates.run import run_on_arrow
from lakelib.model.gate import CheckResult, Status
from lakelib.model.schema import Column
from lakelib.specs.suite import Check, parse_suite

TEXT = [Column(id=1, name="text", type="string")]
WITHOUT_END = r"^(?:(a+)+\1)$"
"""It refers back, so that only Python can say it, and tries every way to cut the text."""
LONG = "a" * 60 + "!"


def check(expectation: str, **arguments: object) -> Check:
    return Check(
        name=expectation, expectation=expectation, arguments={"column": "text", **arguments}, limit_seconds=0.5
    )


def judged(texts: list[str | None], *checks: Check) -> list[CheckResult]:
    rows = pa.table({"text": pa.array(texts, pa.string())})
    return run_on_arrow(checks, TEXT, lambda names: rows.select(names).to_batches(max_chunksize=2))


def test_a_pattern_without_an_end_errs_and_the_others_are_judged() -> None:
    started = time.monotonic()
    found = judged(
        [LONG, None, "aa", LONG],
        check("expect_column_values_to_match_regex", regex=WITHOUT_END),
        check("expect_column_values_to_match_regex", regex="(?i)A"),
        check("expect_column_values_to_not_be_null"),
    )
    assert time.monotonic() - started < 10
    assert [result.status for result in found] == [Status.ERRORED, Status.PASSED, Status.FAILED]
    assert "longer than it may" in found[0].detail


def test_a_pattern_that_goes_back_a_lot_is_none_that_goes_back_here() -> None:
    """Java's and Python's engines need longer than the sun lasts."""
    started = time.monotonic()
    (found,) = judged([LONG * 1000], check("expect_column_values_to_match_regex", regex="^(a+)+$"))
    assert time.monotonic() - started < 10
    assert found.status is Status.FAILED


def test_a_json_schema_has_an_end_too() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}
    (found,) = judged([f'"{LONG}"'], check("expect_column_values_to_match_json_schema", json_schema=schema))
    assert found.status is Status.ERRORED


def test_nobody_waits_for_a_check_without_an_end() -> None:
    started = threading.Event()

    def judge_without_end() -> None:
        started.set()
        judged(
            [LONG],
            Check(
                name="",
                expectation="expect_column_values_to_match_regex",
                limit_seconds=5,
                arguments={"column": "text", "regex": WITHOUT_END},
            ),
        )

    other = threading.Thread(target=judge_without_end)
    other.start()
    started.wait()
    (found,) = judged(["a"], check("expect_column_values_to_match_regex", regex="(?i)A"))
    assert found.status is Status.PASSED
    assert other.is_alive()
    other.join()


def test_no_process_is_left() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    judged([LONG], check("expect_column_values_to_match_regex", regex=WITHOUT_END))
    judged(["a"], check("expect_column_values_to_match_regex", regex="(?i)A"))
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


def test_what_is_wrong_with_a_text_is_told() -> None:
    apart = Apart()
    try:
        with pytest.raises(CheckError, match="JSONDecodeError"):
            apart.test("json schema", {"type": "object"}, ["no JSON"], 10)
        assert apart.test("json", None, ["1", "x"], 10) == b"\1\0"
    finally:
        apart.close()


def test_much_text_is_tested_apart() -> None:
    texts = [f"{number} {'x' * 100}" for number in range(50_000)]
    (found,) = judged(
        texts,
        Check(
            name="",
            expectation="expect_column_values_to_match_regex",
            arguments={"column": "text", "regex": r"(?i)^\d+\b X"},
        ),
    )
    assert (found.status, found.row_count) == (Status.PASSED, 50_000)


def test_a_limit_and_a_sample_are_part_of_what_a_suite_says() -> None:
    def text(more: str) -> str:
        return f"name: a\nexpectations: [{{type: expect_column_values_to_not_be_null, kwargs: {{column: a}}{more}}}]"

    plain = parse_suite(text(""))
    assert parse_suite(text(", sample: 20, limit_seconds: 60")).hash == plain.hash
    assert len({plain.hash, parse_suite(text(", sample: 0")).hash, parse_suite(text(", limit_seconds: 5")).hash}) == 3


def test_no_value_is_kept_of_a_check_that_keeps_none() -> None:
    keeps_none = Check(name="", expectation="expect_column_values_to_be_null", arguments={"column": "text"}, sample=0)
    unique = Check(name="", expectation="expect_column_values_to_be_unique", arguments={"column": "text"}, sample=1)
    first, second = judged(["secret", "secret"], keeps_none, unique)
    assert (first.unexpected_count, first.sample, second.sample) == (2, (), ("secret",))
