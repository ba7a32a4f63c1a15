"""Promises of the report: one page that needs nothing else, and in which the data is text."""

from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.gates.report import report_html
from lakelib.model.gate import CheckResult, Outcome, Scope, Severity, Status, Verdict


def _check(**given: Any) -> CheckResult:
    values = {
        "name": "has a customer",
        "expectation": "expect_column_values_to_not_be_null",
        "arguments": {"column": "customer_id"},
        "scope": Scope.STAGED,
        "severity": Severity.CRITICAL,
        "status": Status.PASSED,
    }
    return CheckResult(**(values | given))


def _verdict(*checks: CheckResult, outcome: Outcome = Outcome.REJECT, gate: str = "orders") -> Verdict:
    return Verdict(
        commit_id=UUID(int=7),
        gate=gate,
        suite_hash="b262cc0006917dc8",
        outcome=outcome,
        base_snapshot_id=41,
        engine="spark",
        seconds=6.42,
        judged_at=datetime(2026, 11, 18, 3, 4, 5, tzinfo=UTC),
        checks=checks,
    )


class _Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def test_it_tells_what_was_found_and_of_what() -> None:
    failed = _check(status=Status.FAILED, row_count=12_840, unexpected_count=3, sample=(None, "x"))
    page = _Page(report_html(_verdict(failed, _check()), table="shop.orders", state="rejected"))
    for said in (
        "shop.orders",
        "Rejected",
        str(UUID(int=7)),
        "rejected now",
        "snapshot 41",
        "2026-11-18 03:04:05 UTC",
        "on Spark in 6.4 s",
        "3 of 12,840 rows not as expected 0.02 %",
        "NULL",
        '"x"',
        "1 failed · 0 errored · 1 passed",
    ):
        assert said in page.text


def test_the_most_severe_failures_come_first() -> None:
    names = [("p", Status.PASSED, Severity.CRITICAL), ("i", Status.FAILED, Severity.INFO)]
    names += [("e", Status.ERRORED, Severity.CRITICAL), ("c", Status.FAILED, Severity.CRITICAL)]
    checks = [_check(name=f"check {name}", status=status, severity=severity) for name, status, severity in names]
    text = _Page(report_html(_verdict(*checks))).text
    places = [text.index(f"check {name}") for name in "ciep"]
    assert places == sorted(places)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_its_words(outcome: Outcome) -> None:
    words = {
        Outcome.ACCEPT: "Every check that counts has passed.",
        Outcome.WARN: "Nothing critical",
        Outcome.REJECT: "A critical check has failed.",
        Outcome.ERRORED: "Nothing is said of the rows",
    }
    assert words[outcome] in report_html(_verdict(_check(), outcome=outcome))


@pytest.mark.parametrize(
    ("unexpected", "rows", "share"),
    [(1, 10**6, "less than 0.01 %"), (10**6 - 1, 10**6, "more than 99.99 %"), (0, 0, "0.00 %"), (5, 5, "100.00 %")],
)
def test_a_few_rows_are_never_shown_as_none(unexpected: int, rows: int, share: str) -> None:
    check = _check(status=Status.FAILED, row_count=rows, unexpected_count=unexpected)
    assert share in _Page(report_html(_verdict(check))).text


def test_it_needs_nothing_from_elsewhere() -> None:
    page = _Page(report_html(_verdict(_check())))
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert not [attributes for _, attributes in page.tags if attributes.keys() & {"src", "href", "onload", "onerror"}]
    assert "url(" not in page.text
    assert "@import" not in page.text


_HOSTILE = st.text() | st.sampled_from(
    ["<script>alert(1)</script>", "'\"><img src=x onerror=alert(1)>", "</style>", "&lt;"]
)


@given(hostile=_HOSTILE)
def test_whatever_the_data_holds_adds_no_element(hostile: str) -> None:
    def page(text: str) -> _Page:
        check = _check(
            name=text,
            status=Status.FAILED,
            arguments={text: [text]},
            observed={text: text},
            row_count=1,
            unexpected_count=1,
            sample=(text, {text: text}),
            detail=text + ".",
        )
        return _Page(report_html(_verdict(check, gate=text), table=text + ".", state=text + "."))

    assert page(hostile).tags == page("harmless").tags
