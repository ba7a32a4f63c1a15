"""Promises of kept verdicts: whatever the data holds, a verdict comes back as it was."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelib
from lakelib import Lake, NotFoundError
from lakelib.catalog.gates import find_verdict, store_verdict
from lakelib.gates.evidence import as_json, as_sample
from lakelib.model.gate import CheckResult, Outcome, Scope, Severity, Status, Verdict


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakelib.connect(warehouse=str(tmp_path_factory.mktemp("lake")), catalog=module_catalog_url) as lake:
        lake.create_namespace("shop")
        lake.create_table("shop.orders", "id BIGINT")
        yield lake


def verdict_of(commit_id: UUID, *checks: CheckResult, outcome: Outcome = Outcome.WARN) -> Verdict:
    return Verdict(
        commit_id=commit_id,
        gate="orders",
        suite_hash="0123456789abcdef",
        outcome=outcome,
        base_snapshot_id=0,
        engine="arrow",
        seconds=0.25,
        judged_at=datetime.now(UTC),
        checks=checks,
    )


_ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None)),
    st.binary(),
    st.decimals(),
    st.dates(),
    st.datetimes(),
    st.lists(st.floats() | st.text(st.characters(codec=None)), max_size=30),
)


@settings(max_examples=50)
@given(value=_ANYTHING)
def test_evidence_of_any_value_comes_back_as_it_was(lake: Lake, value: Any) -> None:
    staged = lake.table("shop.orders").stage_append(pa.table({"id": [1]}))
    check = CheckResult(
        name="a",
        expectation="expect_x",
        arguments={"value_set": as_json([value])},
        scope=Scope.TABLE,
        severity=Severity.INFO,
        status=Status.ERRORED,
        observed=as_json(value),
        row_count=10**12,
        unexpected_count=0,
        sample=as_sample([value] * 30),
        detail="why",
    )
    verdict = verdict_of(staged.id, check)
    store_verdict(lake.runtime.catalog, verdict, "")
    assert find_verdict(lake.runtime.catalog, staged.id) == verdict


def test_a_verdict_that_rejects_and_the_rejection_are_one(lake: Lake) -> None:
    staged = lake.table("shop.orders").stage_append(pa.table({"id": [1]}))
    store_verdict(lake.runtime.catalog, verdict_of(staged.id, outcome=Outcome.REJECT), "gate orders: too few")
    with pytest.raises(lakelib.RejectedError, match="is rejected \\(gate orders: too few\\)"):
        staged.publish()


def test_the_newest_verdict_is_the_last_one_kept(lake: Lake) -> None:
    staged = lake.table("shop.orders").stage_append(pa.table({"id": [1]}))
    for outcome in (Outcome.ERRORED, Outcome.ACCEPT):
        store_verdict(lake.runtime.catalog, verdict_of(staged.id, outcome=outcome), "")
    found = find_verdict(lake.runtime.catalog, staged.id)
    assert found is not None
    assert found.outcome is Outcome.ACCEPT


def test_a_verdict_needs_a_commit(lake: Lake) -> None:
    with pytest.raises(NotFoundError):
        store_verdict(lake.runtime.catalog, verdict_of(uuid4()), "")
