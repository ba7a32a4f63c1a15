"""Pure. Decides what has to be read to tell what a staged commit does to the rows that there were, and what the results
of a gate's checks mean for the commit."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakelib.dataclass import dataclass
from lakelib.model.changes import ChangeSplit, Way
from lakelib.model.effect import NOTHING, Effect
from lakelib.model.files import DataFile, Partition
from lakelib.model.gate import CheckResult, Outcome, Severity, Status, Verdict
from lakelib.plan.changes import put_beside
from lakelib.plan.scan import arrange_splits, count_known_rows

_MOST_NAMED = 5
_STAGED = 2**63


def decide_outcome(checks: Sequence[CheckResult]) -> Outcome:
    """A critical check that failed rejects; else one that errored says nothing of the data; else a warning that failed
    or errored is a warning. Checks of severity info change nothing."""
    found = {(check.severity, check.status) for check in checks}
    if (Severity.CRITICAL, Status.FAILED) in found:
        return Outcome.REJECT
    if (Severity.CRITICAL, Status.ERRORED) in found:
        return Outcome.ERRORED
    if found & {(Severity.WARNING, Status.FAILED), (Severity.WARNING, Status.ERRORED)}:
        return Outcome.WARN
    return Outcome.ACCEPT


def describe_failures(verdict: Verdict) -> str:
    """ "2 of 12 checks failed: amount is positive (3 of 100 rows), …": the critical ones that decided, in one line."""
    status = Status.ERRORED if verdict.outcome is Outcome.ERRORED else Status.FAILED
    decisive = [check for check in verdict.checks if check.status is status and check.severity is Severity.CRITICAL]
    named = ", ".join(check.told() for check in decisive[:_MOST_NAMED])
    more = f" and {len(decisive) - _MOST_NAMED} more" if len(decisive) > _MOST_NAMED else ""
    return f"{len(decisive)} of {len(verdict.checks)} checks {status.value}: {named}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEffect:
    """What files tell by themselves, and the splits whose rows have to be asked."""

    known: Effect
    splits: tuple[ChangeSplit, ...]


def arrange_effect(
    before: Sequence[DataFile],
    after: Sequence[DataFile],
    partitions: Mapping[int, Partition],
    *,
    has_key: bool,
    moves_keys: bool = False,
) -> ToldEffect:
    """Of the files that the touched partitions have, and would have, each in the order of their versions. Where keys
    move a row that comes to a partition may be one that leaves another."""
    known, splits = NOTHING, list[ChangeSplit]()
    for partition_id, states in _by_partition(before, after).items():
        partition = partitions[partition_id]
        is_asked = moves_keys and (states.gone or states.come)
        told = None if is_asked else _told_by_files(states, partition, has_key=has_key)
        if told is None:
            splits += _splits(states, partition, has_key=has_key)
        else:
            known += told
    return ToldEffect(known=known, splits=tuple(put_beside(splits) if moves_keys else splits))


@dataclass(frozen=True, slots=True, kw_only=True)
class _States:
    before: tuple[DataFile, ...]
    after: tuple[DataFile, ...]

    @property
    def gone(self) -> tuple[DataFile, ...]:
        kept = {file.id for file in self.after}
        return tuple(file for file in self.before if file.id not in kept)

    @property
    def come(self) -> tuple[DataFile, ...]:
        known = {file.id for file in self.before}
        return tuple(file for file in self.after if file.id not in known)


def _by_partition(before: Sequence[DataFile], after: Sequence[DataFile]) -> dict[int, _States]:
    found: dict[int, tuple[list[DataFile], list[DataFile]]] = defaultdict(lambda: ([], []))
    for side, files in enumerate((before, after)):
        for file in files:
            found[file.partition_id][side].append(file)
    return {
        partition_id: _States(before=tuple(was), after=tuple(will_be)) for partition_id, (was, will_be) in found.items()
    }


def _told_by_files(states: _States, partition: Partition, *, has_key: bool) -> Effect | None:
    """Where rows only come, or only go, and each row of the files is one of the table's."""
    gone, come = states.gone, states.come
    if not gone and not come:
        return NOTHING
    only_come, only_go = (not states.before, not states.after) if has_key else (not gone, not come)
    if not (only_come or only_go):
        return None
    rows = count_known_rows(come if only_come else gone, {partition.id: partition}, merges=has_key)
    if rows is None:
        return None
    return replace(NOTHING, inserted=rows) if only_come else replace(NOTHING, deleted=rows)


def _splits(states: _States, partition: Partition, *, has_key: bool) -> list[ChangeSplit]:
    gone, come = states.gone, states.come
    if not has_key:
        return [ChangeSplit(way=Way.COMPARE, partition=partition, before=gone, after=come)]
    # Only what comes on top is asked by its keys alone: a rollback brings files that are older than others.
    on_top = not gone and min(map(_age, come)) > max(map(_age, states.before), default=-1)
    union = sorted({file.id: file for file in (*states.before, *states.after)}.values(), key=_age)
    splits = []
    for split in arrange_splits(union, {partition.id: partition}, merges=True):
        own = {file.id for file in split.files}
        was, will_be, new = (
            tuple(file for file in files if file.id in own) for files in (states.before, states.after, come)
        )
        if was != will_be:
            splits.append(
                ChangeSplit(
                    way=Way.FRESH if on_top else Way.COMPARE,
                    partition=partition,
                    depth=split.depth,
                    prefix=split.prefix,
                    fresh=new if on_top else (),
                    before=was,
                    after=will_be,
                )
            )
    return splits


def _age(file: DataFile) -> int:
    return _STAGED if file.sequence is None else file.sequence
