"""Pure. Decides which files are read together to find the rows whose keys have moved to another partition."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile, Partition, Split
from lakelib.model.table import MAX_DEPTH
from lakelib.plan.scan import arrange_splits, balance

_MOST_ROWS = 8_000_000
"""Of so many new rows the keys are in memory at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """New rows, and where else their keys may be."""

    own: tuple[Split, ...]
    """One run of one partition each."""
    there: tuple[Split, ...]
    tells_own: bool = True
    """Whether it is this one to say which of the new rows leave."""


def arrange_moves(
    own: Sequence[DataFile],
    own_partitions: Mapping[int, Partition],
    there: Sequence[DataFile],
    partitions: Mapping[int, Partition],
    *,
    has_order: bool,
    task_count: int,
) -> list[Sought]:
    """What is looked for together, by about so many tasks. Where versions have an order of their own all those of a key
    meet; else a new row is newer than whatever was there, and the files that were there are dealt."""
    own_rows = sum(file.row_count for file in own)
    depth = (-(-own_rows // _MOST_ROWS) - 1).bit_length()
    if has_order:
        depth = max(depth, (task_count - 1).bit_length())
    arranged: list[Sought] = []
    for prefix in range(1 << min(depth, MAX_DEPTH)):
        new = _runs(_below(own, depth, prefix), own_partitions, depth, prefix)
        arrange = _merged if has_order else _whole
        old = arrange(_below(there, depth, prefix), partitions, depth, prefix)
        if not has_order and len({split.partition.key for split in new}) == 1:
            old = tuple(split for split in old if split.partition.key != new[0].partition.key)
        if new and (old or len(new) > 1):
            arranged += _dealt(new, old, 1 if has_order else task_count)
    return arranged


def arrange_all(files: Sequence[DataFile], partitions: Mapping[int, Partition]) -> list[Sought]:
    """All rows, those of a key together, as if all were new: at most so many at a time."""
    rows = sum(file.row_count for file in files)
    depth = min(MAX_DEPTH, (-(-rows // _MOST_ROWS) - 1).bit_length()) if rows else 0
    arranged = [
        Sought(own=_merged(_below(files, depth, prefix), partitions, depth, prefix), there=())
        for prefix in range(1 << depth)
    ]
    return [each for each in arranged if len({split.partition.key for split in each.own}) > 1]


def _below(files: Sequence[DataFile], depth: int, prefix: int) -> list[DataFile]:
    """Those that may have keys of the prefix."""
    return [file for file in files if _meets(file, depth, prefix)]


def _meets(file: DataFile, depth: int, prefix: int) -> bool:
    if file.depth >= depth:
        return file.prefix >> (file.depth - depth) == prefix
    return prefix >> (depth - file.depth) == file.prefix


def _runs(files: Sequence[DataFile], partitions: Mapping[int, Partition], depth: int, prefix: int) -> list[Split]:
    runs: dict[tuple[int, int], list[DataFile]] = {}
    for file in files:
        runs.setdefault((file.run, file.partition_id), []).append(file)
    return [
        Split(partition=partitions[partition_id], depth=depth, prefix=prefix, files=tuple(run))
        for (_, partition_id), run in sorted(runs.items())
    ]


def _whole(
    files: Sequence[DataFile], partitions: Mapping[int, Partition], depth: int, prefix: int
) -> tuple[Split, ...]:
    """A split a partition: each file is read once, and nothing is merged."""
    found: dict[int, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.partition_id, []).append(file)
    return tuple(
        Split(partition=partitions[partition_id], depth=depth, prefix=prefix, files=tuple(own))
        for partition_id, own in found.items()
    )


def _merged(
    files: Sequence[DataFile], partitions: Mapping[int, Partition], depth: int, prefix: int
) -> tuple[Split, ...]:
    splits = arrange_splits(files, dict(partitions), merges=True)
    return tuple(split if split.depth >= depth else replace(split, depth=depth, prefix=prefix) for split in splits)


def _dealt(new: Sequence[Split], old: Sequence[Split], task_count: int) -> list[Sought]:
    if task_count == 1 or len(old) < 2:
        return [Sought(own=tuple(new), there=tuple(old))]
    shares = balance([split.size_bytes for split in old], task_count)
    return [
        Sought(own=tuple(new), there=tuple(old[place] for place in share), tells_own=number == 0)
        for number, share in enumerate(shares)
    ]
