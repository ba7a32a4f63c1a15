"""Use case: a table forgets its past.

Step by step: commits that have waited for too long can no longer be published; tags whose time is over and leases that
have run out go; of the snapshots, those that count and age let go and that nothing holds expire; the files that no
commit and no snapshot needs any more enter the queue. A vacuum deletes them once their grace is over.
"""

from dataclasses import replace
from datetime import UTC, timedelta

from lakelib.catalog import retention
from lakelib.catalog.roles import require_right
from lakelib.errors import InvalidInputError
from lakelib.model.roles import Right
from lakelib.model.table import TableInfo
from lakelib.model.upkeep import ExpireResult, HeldSnapshot, Hold, OpenCommit, RetentionRules
from lakelib.ops.delta import before_expiry, delta_keeps
from lakelib.ops.runtime import Runtime
from lakelib.plan.retention import Retention, choose_expired, choose_stale_commits, is_needed
from lakelib.specs.texts import LONGEST_LENGTH

DEFAULT_KEEP_LAST = 10
DEFAULT_OLDER_THAN = timedelta(days=7)

_MOST_KEPT = 2**31 - 1


def parse_rules(
    keep_last: int | None, older_than: timedelta | None, staged_older_than: timedelta | None
) -> RetentionRules:
    """What is not given holds nothing back; with neither count nor age given both have their defaults. Raises
    InvalidInputError."""
    if keep_last is None and older_than is None:
        keep_last, older_than = DEFAULT_KEEP_LAST, DEFAULT_OLDER_THAN
    check_count("keep_last", keep_last)
    check_length("older_than", older_than)
    check_length("staged_older_than", staged_older_than)
    return RetentionRules(keep_last=keep_last, older_than=older_than, staged_older_than=staged_older_than)


def check_count(name: str, count: int | None) -> None:
    """Raises InvalidInputError for what is no number of things of which one stays at least."""
    if count is None or (isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= _MOST_KEPT):
        return
    raise InvalidInputError(
        f"{name} is {count!r}.",
        kind="invalid_retention",
        remedy=f"Give a number from 1 to {_MOST_KEPT:,}: the newest always stays.",
    )


def check_length(name: str, length: timedelta | None) -> None:
    """Raises InvalidInputError for a length of time that is none, is negative, or leads out of the calendar."""
    if length is not None and (not isinstance(length, timedelta) or not timedelta(0) <= length <= LONGEST_LENGTH):
        raise InvalidInputError(
            f"{name} is {length!r}.",
            kind="invalid_retention",
            remedy=f"Give a timedelta from 0 to {LONGEST_LENGTH.days:,} days.",
        )


def expire(runtime: Runtime, table: TableInfo, rules: RetentionRules, grace: timedelta) -> ExpireResult:
    """Beside readers and writers, in short transactions. Killed at any moment it is finished by the next one."""
    check_length("grace", grace)
    require_right(runtime.catalog, Right.MAINTAIN)
    before_expiry(runtime, table)
    grace = max(grace, delta_keeps(table))
    catalog = runtime.catalog
    runtime.ownership.confirm_now()
    now = retention.load_past(catalog, table.id).now
    commits = 0
    if rules.staged_older_than is not None:
        commits = retention.expire_commits(catalog, table.id, now - rules.staged_older_than)
    tags = retention.expire_tags(catalog, table.id)
    leases = retention.drop_spent_leases(catalog, table.id)
    past = retention.load_past(catalog, table.id)
    chosen = choose_expired(past.snapshots, _holds(past, past.open_commits), rules, now, past.reaches)
    expired = retention.expire_snapshots(catalog, table.id, chosen.expired)
    queued = retention.queue_files(catalog, table.id, grace)
    held = chosen.held
    if len(expired) < len(chosen.expired):
        held = _held_meanwhile(runtime, table, rules, chosen, expired)
    return _result(table, past, expired, held, commits, tags, leases, queued)


def preview(runtime: Runtime, table: TableInfo, rules: RetentionRules, grace: timedelta) -> ExpireResult:
    """What `expire` would do now. Changes nothing."""
    check_length("grace", grace)
    past = retention.load_past(runtime.catalog, table.id)
    stale = choose_stale_commits(past.open_commits, rules, past.now)
    open_commits = tuple(commit for commit in past.open_commits if commit not in stale)
    chosen = choose_expired(past.snapshots, _holds(past, open_commits), rules, past.now, past.reaches)
    gone = set(chosen.expired)
    kept = [snapshot.id for snapshot in past.snapshots if snapshot.id not in gone]
    measured = retention.measure_queue(
        runtime.catalog,
        table.id,
        [commit.id for commit in stale],
        lambda added, removed: is_needed(kept, added, removed),
    )
    tags = retention.list_ended_tags(runtime.catalog, table.id)
    leases = retention.count_spent_leases(runtime.catalog, table.id)
    result = _result(table, past, list(chosen.expired), chosen.held, len(stale), tags, leases, measured)
    return replace(result, dry_run=True)


def _holds(past: retention.Past, commits: tuple[OpenCommit, ...]) -> tuple[Hold, ...]:
    """A commit holds its base and what came after it, if publishing compares it with that; a rollback what it brings
    back, too."""
    bases = [_hold(commit, "commit", commit.base_snapshot_id) for commit in commits if commit.holds_past]
    targets = [_hold(commit, "rollback", commit.restores) for commit in commits if commit.restores is not None]
    return (*past.holds, *bases, *targets)


def _hold(commit: OpenCommit, what: str, snapshot_id: int) -> Hold:
    return Hold(
        kind=f"{commit.state} {what}",
        name=str(commit.id),
        snapshot_id=snapshot_id,
        since=commit.since.astimezone(UTC),
    )


def _held_meanwhile(
    runtime: Runtime, table: TableInfo, rules: RetentionRules, chosen: Retention, expired: list[int]
) -> tuple[HeldSnapshot, ...]:
    """Those held before, and those that got a tag, a lease, a consumer or a commit since they were chosen."""
    past = retention.load_past(runtime.catalog, table.id)
    now_held = choose_expired(past.snapshots, _holds(past, past.open_commits), rules, past.now, past.reaches).held
    late = {each.id: each for each in now_held if each.id in set(chosen.expired) - set(expired)}
    return tuple(sorted((*chosen.held, *late.values()), key=lambda each: each.id))


def _result(
    table: TableInfo,
    past: retention.Past,
    expired: list[int],
    held: tuple[HeldSnapshot, ...],
    commits: int,
    tags: list[str],
    leases: int,
    queued: retention.QueuedFiles,
) -> ExpireResult:
    gone = set(expired)
    return ExpireResult(
        table=table.full_name,
        dry_run=False,
        snapshots=tuple(expired),
        kept_back=held,
        commits=commits,
        tags=tuple(tags),
        leases=leases,
        files=queued.files,
        size_bytes=queued.size_bytes,
        oldest_id=next((snapshot.id for snapshot in past.snapshots if snapshot.id not in gone), None),
    )
