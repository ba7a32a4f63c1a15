"""Pure. Decides what has to be read to tell what a staged commit does to the rows that there were."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakelib.dataclass import dataclass
from lakelib.model.changes import ChangeSplit, Way
from lakelib.model.effect import NOTHING, Effect
from lakelib.model.files import DataFile, Partition
from lakelib.plan.changes import put_beside
from lakelib.plan.scan import arrange_splits, count_known_rows

_STAGED = 2**63


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
