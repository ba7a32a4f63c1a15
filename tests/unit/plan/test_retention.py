"""Which snapshots and commits expire, and which files the past still needs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.model.upkeep import Hold, KeptSnapshot, OpenCommit, RetentionRules
from lakelib.plan.retention import choose_expired, choose_stale_commits, is_needed

START = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def past(*days: int) -> list[KeptSnapshot]:
    """Snapshots 1, 2, … committed on these days."""
    times = [START + day * DAY for day in days]
    return [
        KeptSnapshot(id=number, committed_at=time, superseded_at=following)
        for number, (time, following) in enumerate(zip(times, [*times[1:], None], strict=True), start=1)
    ]


def rules(
    keep_last: int | None = None, older_than: timedelta | None = None, staged_older_than: timedelta | None = None
) -> RetentionRules:
    return RetentionRules(keep_last=keep_last, older_than=older_than, staged_older_than=staged_older_than)


def expired(
    snapshots: Sequence[KeptSnapshot], given_rules: RetentionRules, *holds: Hold, day: int = 10
) -> tuple[int, ...]:
    return choose_expired(snapshots, holds, given_rules, START + day * DAY).expired


def test_the_last_ones_stay() -> None:
    assert expired(past(1, 2, 3, 4), rules(keep_last=2)) == (1, 2)


@pytest.mark.parametrize("given_rules", [rules(), rules(keep_last=1), rules(older_than=timedelta(0))])
def test_the_head_always_stays(given_rules: RetentionRules) -> None:
    assert expired(past(1, 2, 3), given_rules, day=100) == (1, 2)
    assert expired(past(1), given_rules, day=100) == ()
    assert expired((), given_rules) == ()


def test_a_snapshot_is_as_old_as_the_one_that_took_its_place() -> None:
    """Else the table as it was two days ago would be gone because it had not changed for long before."""
    assert expired(past(1, 9), rules(older_than=2 * DAY)) == ()
    assert expired(past(1, 7, 9), rules(older_than=2 * DAY)) == (1,)


def test_count_and_age_have_to_agree() -> None:
    snapshots = past(1, 2, 3, 9)
    assert expired(snapshots, rules(keep_last=3, older_than=DAY)) == (1,)
    assert expired(snapshots, rules(keep_last=1, older_than=5 * DAY)) == (1, 2)


def test_tags_and_leases_hold_one_snapshot() -> None:
    tag = Hold(kind="tag", name="eod", snapshot_id=1)
    lease = Hold(kind="lease", name="host/1", snapshot_id=3)
    chosen = choose_expired(past(1, 2, 3, 4), (lease, tag), rules(keep_last=1), START)
    assert chosen.expired == (2,)
    assert [(held.id, str(held.hold)) for held in chosen.held] == [(1, "tag eod"), (3, "lease host/1")]


def test_a_tag_is_named_before_a_lease_on_the_same_snapshot() -> None:
    holds = [Hold(kind="lease", name="host/1", snapshot_id=1), Hold(kind="tag", name="eod", snapshot_id=1)]
    for order in (holds, holds[::-1]):
        assert [each.hold.kind for each in choose_expired(past(1, 2), order, rules(), START).held] == ["tag"]


def test_a_tag_without_an_end_is_named_before_one_that_goes_by_itself() -> None:
    holds = [
        Hold(kind="tag", name=name, snapshot_id=1, has_end=has_end)
        for name, has_end in (("run", True), ("mine", False))
    ]
    for order in (holds, holds[::-1]):
        assert [each.hold.name for each in choose_expired(past(1, 2), order, rules(), START).held] == ["mine"]


@pytest.mark.parametrize("kind", ["staged commit", "rejected commit"])
def test_a_commit_holds_its_base_and_all_that_came_after(kind: str) -> None:
    holds = [Hold(kind=kind, name=name, snapshot_id=base) for name, base in (("late", 3), ("early", 2))]
    chosen = choose_expired(past(1, 2, 3, 4, 5), holds, rules(keep_last=1), START)
    assert chosen.expired == (1,)
    assert {(held.id, held.hold.name) for held in chosen.held} == {(2, "early"), (3, "early"), (4, "early")}


def test_a_commit_made_from_the_empty_table_holds_everything() -> None:
    assert expired(past(1, 2, 3), rules(), Hold(kind="staged commit", name="x", snapshot_id=0)) == ()


def test_commits_are_stale_when_they_have_waited_for_longer_than_the_rule() -> None:
    commits = [
        OpenCommit(id=UUID(int=day), state="staged", base_snapshot_id=1, since=START + day * DAY, holds_past=True)
        for day in (1, 5, 9)
    ]
    now = START + 10 * DAY
    assert choose_stale_commits(commits, rules(staged_older_than=4 * DAY), now) == commits[:2]
    assert choose_stale_commits(commits, rules(), now) == []


@given(
    kept=st.sets(st.integers(1, 12)).map(sorted),
    added=st.integers(1, 12),
    length=st.integers(1, 12),
)
def test_a_file_is_needed_exactly_if_it_is_live_in_a_snapshot_that_is_left(
    kept: list[int], added: int, length: int
) -> None:
    removed = added + length
    assert is_needed(kept, added, removed) == any(added <= snapshot < removed for snapshot in kept)


@given(
    days=st.lists(st.integers(0, 20), min_size=1, max_size=12).map(sorted),
    keep_last=st.none() | st.integers(1, 5),
    older_than=st.none() | st.integers(0, 20).map(lambda days: days * DAY),
    tagged=st.sets(st.integers(1, 12)),
    base=st.none() | st.integers(0, 12),
)
def test_what_expires_is_let_go_by_every_rule_and_held_by_nothing(
    days: list[int], keep_last: int | None, older_than: timedelta | None, tagged: set[int], base: int | None
) -> None:
    snapshots, now = past(*days), START + 20 * DAY
    holds = [Hold(kind="tag", name="t", snapshot_id=number) for number in sorted(tagged)]
    holds += [] if base is None else [Hold(kind="staged commit", name="s", snapshot_id=base)]
    chosen = choose_expired(snapshots, holds, rules(keep_last, older_than), now)

    def goes(snapshot: KeptSnapshot) -> bool:
        newer = len(snapshots) - snapshot.id
        superseded = snapshot.superseded_at
        return (
            superseded is not None
            and newer >= (keep_last or 1)
            and (older_than is None or superseded < now - older_than)
            and snapshot.id not in tagged
            and (base is None or snapshot.id < base)
        )

    assert chosen.expired == tuple(snapshot.id for snapshot in snapshots if goes(snapshot))
    assert not {held.id for held in chosen.held} & set(chosen.expired)
