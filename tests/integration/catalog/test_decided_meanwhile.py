"""Work that others have overtaken is not done again once its commit was decided: a person or a newer attempt counts."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lakelib
from lakelib.ops.patience import Patience
from tests.integration.faults.jobs import SCHEMA, read, rows
from tests.staging_hooks import before_staging

WIDER = rows({2: ("mon", 2)}).append_column("note", pa.array(["x"]))


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows({1: ("mon", 1)}))
    return table


def overtake(patch: pytest.MonkeyPatch, first: Callable[[], object], then: Callable[[Any], object]) -> None:
    """The first comes before the next commit is staged, the other while that waits to be done again."""
    left: list[Any] = [first]
    staged: list[Any] = []

    def come(catalog: Any, proposal: Any) -> None:
        if left:
            left.pop()()
            staged.append(proposal.commit_id)

    pause = Patience.pause

    def decide(self: Patience) -> None:
        pause(self)
        if staged:
            then(staged.pop())

    before_staging(patch, come)
    patch.setattr(Patience, "pause", decide)


WORK: dict[str, tuple[Callable[[lakelib.Table], object], Callable[[lakelib.Table], object]]] = {
    "done anew": (
        lambda table: table.upsert(WIDER, merge_schema=True, idempotency_key=("load", 1)),
        lambda table: table.evolve(add=[("other", "string")]),
    ),
    "amended": (
        lambda table: table.delete("value = 1", idempotency_key=("load", 1)),
        lambda table: table.upsert(rows({3: ("mon", 1)})),
    ),
}


@pytest.mark.parametrize("how", WORK)
def test_a_commit_that_a_person_has_rejected_is_not_done_again(
    how: str, lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, change = WORK[how]
    overtake(monkeypatch, lambda: change(table), lambda commit_id: lake.staged(commit_id).reject("not today"))

    with pytest.raises(lakelib.RejectedError, match="not today"):
        work(table)

    assert len(table.history()) == 2


@pytest.mark.parametrize("how", WORK)
def test_an_attempt_that_a_newer_one_has_ended_does_not_come_back(
    how: str, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, change = WORK[how]
    newer: list[lakelib.StagedCommit] = []

    def come(commit_id: Any) -> None:
        newer.append(table.stage_upsert(rows({9: ("sun", 9)}), idempotency_key=("load", 1)))

    overtake(monkeypatch, lambda: change(table), come)

    with pytest.raises(lakelib.ConflictError) as caught:
        work(table)
    newer[0].publish()

    assert caught.value.kind == "fenced"
    assert read(table)[9] == ("sun", 9)


@pytest.mark.parametrize("how", WORK)
def test_work_that_somebody_has_published_is_not_done_twice(
    how: str, lake: lakelib.Lake, table: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another attempt at it, under the same key."""
    work, change = WORK[how]
    published: list[lakelib.Snapshot] = []
    overtake(
        monkeypatch,
        lambda: change(table),
        lambda _: published.append(table.upsert(rows({9: ("sun", 9)}), idempotency_key=("load", 1))),
    )

    told: Any = work(table)

    assert told == published[0]
    assert told.replayed
    assert len(table.history()) == 3
