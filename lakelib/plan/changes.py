"""Pure. Decides how it is found out what has changed between two snapshots, and whether it can be."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from lakelib.dataclass import dataclass
from lakelib.model.changes import CHANGE_COLUMN, ChangeSplit, ChangeView, Way
from lakelib.model.files import DataFile, Partition, Split
from lakelib.model.schema import OP_COLUMN, Column
from lakelib.model.table import MAX_DEPTH, Step
from lakelib.plan.scan import arrange_splits
from lakelib.plan.where import COMMIT

_ROWS_TOGETHER = 4_000_000
"""Of so many rows what has changed is in memory at a time, where keys may come from one partition to another."""


def told_columns(view: str | None) -> tuple[Column, ...]:
    """What a view of changes has beside the table's columns; nothing for rows as they are."""
    if view is None:
        return ()
    name = CHANGE_COLUMN if view == ChangeView.NET.value else OP_COLUMN
    return (COMMIT, Column(id=-2, name=name, type="string", nullable=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What is asked for, with the snapshot before it, unless that is none, and its own in rising order."""

    after_id: int
    until_id: int
    view: ChangeView
    steps: tuple[Step, ...]
    has_key: bool
    asks_after: bool
    """Whether a row that came later need not be what its key has."""
    moves_keys: bool = False
    """Whether a row may have come from another partition."""

    @property
    def own_steps(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.id > self.after_id)

    @property
    def asks_before(self) -> bool:
        """Whether what is deleted may not have been there: a version that came too late leaves where it came to."""
        return self.moves_keys and self.asks_after and self.view is ChangeView.LATEST

    @property
    def is_known(self) -> bool:
        """Whether it is known of each commit which files it has added and taken out: they go when snapshots expire."""
        loud = [step for step in self.own_steps if not step.is_silent]
        return all(step.is_kept and (step.only_adds or self.has_state(step.id - 1)) for step in loud)

    def has_state(self, snapshot_id: int) -> bool:
        """Whether the table can be read as of a snapshot; before the first one it is empty."""
        return snapshot_id == 0 or any(step.id == snapshot_id and step.is_kept for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """Where something may have changed, by the files that came or went."""

    replaced: frozenset[tuple[int, int]]
    """Which commits took rows of which partition away without a delete of each, or brought back what had been there."""
    added: frozenset[tuple[int, int]]
    """Which commits brought rows or deletes of which partition."""

    @property
    def partition_ids(self) -> frozenset[int]:
        return frozenset(partition_id for _, partition_id in self.replaced | self.added)


def find_touched(range_: Range, files: Iterable[DataFile]) -> Touched:
    """Of the files that came or went in the range."""
    loud = {step.id for step in range_.own_steps if not step.is_silent}
    replaced: set[tuple[int, int]] = set()
    added: set[tuple[int, int]] = set()
    for file in files:
        if file.removed_snapshot in loud:
            replaced.add((file.removed_snapshot, file.partition_id))
        if file.added_snapshot in loud:
            (added if is_fresh(file) else replaced).add((file.added_snapshot, file.partition_id))
    return Touched(replaced=frozenset(replaced), added=frozenset(added))


def is_fresh(file: DataFile) -> bool:
    """Whether its rows came with it: a compaction's file, and one that a rollback brings back, have older ones."""
    return file.sequence == file.added_snapshot


def can_be_told(range_: Range, touched: Touched) -> bool:
    """Whether what is left of the past says all that is asked for."""
    if not range_.has_state(range_.until_id):
        return False
    if range_.view is ChangeView.ALL:
        return range_.is_known
    if range_.has_state(range_.after_id):
        return True
    is_told_by_files = range_.is_known and not touched.replaced and not range_.asks_before
    return range_.view is ChangeView.LATEST and is_told_by_files


def first_told(range_: Range, touched: Touched) -> int | None:
    """The first snapshot from which on it can be told; None if there is none before the last."""
    for step in range_.steps:
        later = replace(range_, after_id=step.id, steps=tuple(one for one in range_.steps if one.id >= step.id))
        left = Touched(
            replaced=frozenset(pair for pair in touched.replaced if pair[0] > step.id),
            added=frozenset(pair for pair in touched.added if pair[0] > step.id),
        )
        if step.id < range_.until_id and can_be_told(later, left):
            return step.id
    return None


def needs_states(range_: Range, touched: Touched) -> bool:
    """Whether more files are looked at than those that came in the range."""
    if range_.view is ChangeView.ALL:
        return bool(touched.replaced)
    asks_before = range_.view is ChangeView.NET and range_.has_key
    return bool(asks_before or range_.asks_after or touched.replaced or not range_.is_known)


def arrange_changes(
    range_: Range, touched: Touched, files: Sequence[DataFile], partitions: dict[int, Partition]
) -> list[ChangeSplit]:
    """What is read, in the order of commits where that counts. `files` have come in the range, or were there at one of
    its snapshots, where those are needed."""
    of_partition: dict[int, list[DataFile]] = defaultdict(list)
    for file in files:
        of_partition[file.partition_id].append(file)
    splits: list[ChangeSplit] = []
    for part in _parts(range_, touched, of_partition):
        partition = partitions[part.partition_id]
        splits += _splits(range_, part, partition, of_partition[part.partition_id])
    return put_beside(splits, by_commit=range_.view is ChangeView.ALL) if range_.moves_keys else splits


def put_beside(splits: Sequence[ChangeSplit], *, by_commit: bool = False) -> list[ChangeSplit]:
    """The splits of all partitions that keys may have come from one to another of, told together: those of one prefix,
    and where each commit is told by itself of one commit."""
    rows = sum(file.row_count for split in splits for file in split.files)
    depth = min(MAX_DEPTH, (-(-rows // _ROWS_TOGETHER) - 1).bit_length()) if rows else 0
    together: dict[tuple[int | None, int], list[ChangeSplit]] = {}
    for split in splits:
        commit = split.snapshot_id if by_commit else None
        for prefix, own in _at_depth(split, depth):
            together.setdefault((commit, prefix), []).append(own)
    return [replace(first, beside=tuple(others)) for first, *others in together.values()]


def _at_depth(split: ChangeSplit, depth: int) -> list[tuple[int, ChangeSplit]]:
    """The split by the prefixes of a depth: one that covers several is read for each."""
    if split.depth >= depth:
        return [(split.prefix >> (split.depth - depth), split)]
    first, count = split.prefix << (depth - split.depth), 1 << (depth - split.depth)
    return [(prefix, replace(split, depth=depth, prefix=prefix)) for prefix in range(first, first + count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The changes of a partition from one snapshot to another."""

    partition_id: int
    way: Way
    after_id: int
    until_id: int
    snapshot_id: int | None


def _parts(range_: Range, touched: Touched, partition_ids: Iterable[int]) -> Iterator[_Part]:
    if range_.view is ChangeView.ALL:
        for snapshot_id, partition_id in sorted(touched.replaced | touched.added):
            way = Way.COMPARE if (snapshot_id, partition_id) in touched.replaced else Way.FRESH
            yield _Part(
                partition_id=partition_id,
                way=way,
                after_id=snapshot_id - 1,
                until_id=snapshot_id,
                snapshot_id=snapshot_id,
            )
        return
    last_replaced = {partition_id: snapshot_id for snapshot_id, partition_id in sorted(touched.replaced)}
    for partition_id in partition_ids:
        compares = partition_id in last_replaced or not range_.is_known
        yield _Part(
            partition_id=partition_id,
            way=Way.COMPARE if compares else Way.FRESH,
            after_id=range_.after_id,
            until_id=range_.until_id,
            snapshot_id=last_replaced.get(partition_id, range_.until_id) if compares else None,
        )


def _splits(range_: Range, part: _Part, partition: Partition, files: Sequence[DataFile]) -> Iterator[ChangeSplit]:
    def is_new(file: DataFile) -> bool:
        return is_fresh(file) and part.after_id < (file.added_snapshot or 0) <= part.until_id

    asks_before = part.way is Way.COMPARE or (range_.view is ChangeView.NET and range_.has_key) or range_.asks_before
    asks_after = part.way is Way.COMPARE or (range_.view is not ChangeView.ALL and range_.asks_after)
    fresh = _ids(part.way is Way.FRESH, files, is_new)
    before = _ids(asks_before, files, lambda file: _is_live(file, part.after_id))
    after = _ids(asks_after, files, lambda file: _is_live(file, part.until_id))
    wanted = [file for file in files if file.id in fresh | before | after]
    for split in _arranged(range_, part, partition, wanted):
        own_fresh, own_before, own_after = (_chosen(split, ids) for ids in (fresh, before, after))
        if own_fresh or (part.way is Way.COMPARE and own_before != own_after):
            yield ChangeSplit(
                way=part.way,
                partition=partition,
                depth=split.depth,
                prefix=split.prefix,
                snapshot_id=part.snapshot_id,
                fresh=own_fresh,
                before=own_before,
                after=own_after,
            )


def _ids(asked: bool, files: Sequence[DataFile], is_in: Callable[[DataFile], bool]) -> set[int]:
    return {file.id for file in files if asked and is_in(file)}


def _chosen(split: Split, ids: set[int]) -> tuple[DataFile, ...]:
    return tuple(file for file in split.files if file.id in ids)


def _arranged(range_: Range, part: _Part, partition: Partition, files: Sequence[DataFile]) -> list[Split]:
    """Without a key a file is a split, unless files are held against each other: then those of both states are left
    out."""
    if range_.has_key or part.way is Way.FRESH:
        return arrange_splits(files, {partition.id: partition}, merges=range_.has_key)
    own = tuple(file for file in files if _is_live(file, part.after_id) != _is_live(file, part.until_id))
    return [Split(partition=partition, depth=0, prefix=0, files=own)] if own else []


def _is_live(file: DataFile, snapshot_id: int) -> bool:
    added, removed = file.added_snapshot, file.removed_snapshot
    return added is not None and added <= snapshot_id and (removed is None or removed > snapshot_id)
