"""Pure. Decides which files are read together: the splits of a scan, and those that hold, each row once, the newest
compacted state. Decides how much work a task takes, too: so many parts, all tasks about equally heavy, whatever the
parts weigh."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lakelib.model.files import DataFile, Partition, Split
from lakelib.model.options import MIB

SMALL_FILE_BYTES = 256 * 1024
"""A file of at most this size is fetched whole: asking for a part of it takes as long."""
_TASK_BYTES = 128 * MIB
"""What a task reads, compressed, if there is enough to read."""


_SMALL_FILE_ROWS = 4096
"""A file of more rows is worth being read by itself. Its size says little: values that repeat take no room in it."""

_GATHERED_FILES = 256
_GATHERED_ROWS = 16_384
_GATHERED_BYTES = 4 * 1024 * 1024
"""What is read together takes no more memory than a row group does."""


def arrange_splits(files: Iterable[DataFile], partitions: dict[int, Partition], *, merges: bool) -> list[Split]:
    """Splits that together hold every key once. Files keep their order, oldest first.

    A table that merges by key gets one split a bucket, where a file that is shallower than its split is read by every
    split below it. Where such files outweigh the deep ones, the splits are joined. Without keys each file is a split.
    """
    by_partition: dict[int, list[DataFile]] = defaultdict(list)
    for file in files:
        by_partition[file.partition_id].append(file)
    splits: list[Split] = []
    for partition_id, found in by_partition.items():
        partition = partitions[partition_id]
        if merges:
            splits.extend(_bucket_splits(partition, found))
        else:
            splits.extend(_split(partition, 0, 0, [file]) for file in found)
    return splits


def is_small(file: DataFile) -> bool:
    """Whether opening the file costs more than its rows: such files are read whole, and many at a time."""
    return file.size_bytes <= SMALL_FILE_BYTES and file.row_count <= _SMALL_FILE_ROWS


def gather_files(files: Iterable[DataFile]) -> Iterator[list[DataFile]]:
    """The files, in order: small ones that follow each other together, as many as one thread reads at a time."""
    gathered: list[DataFile] = []
    room_rows = room_bytes = 0
    for file in files:
        if gathered and (
            not is_small(file)
            or not is_small(gathered[0])
            or len(gathered) >= _GATHERED_FILES
            or file.row_count > room_rows
            or file.size_bytes > room_bytes
        ):
            yield gathered
            gathered = []
        if not gathered:
            room_rows, room_bytes = _GATHERED_ROWS, _GATHERED_BYTES
        gathered.append(file)
        room_rows -= file.row_count
        room_bytes -= file.size_bytes
    if gathered:
        yield gathered


def gather_splits(splits: Iterable[Split], *, merges: bool) -> Iterator[list[Split]]:
    """The splits, in order: those of one small file each that follow each other together, as `gather_files`."""
    waiting: list[Split] = []
    for split in splits:
        if len(split.files) == 1 and is_small(split.files[0]) and not (merges and _needs_care(split)):
            waiting.append(split)
            continue
        yield from _gathered_splits(waiting)
        waiting = []
        yield [split]
    yield from _gathered_splits(waiting)


def _gathered_splits(splits: list[Split]) -> Iterator[list[Split]]:
    start = 0
    for files in gather_files(split.files[0] for split in splits):
        yield splits[start : start + len(files)]
        start += len(files)


def _needs_care(split: Split) -> bool:
    """Whether some of the rows of its files are not among those of the split."""
    return needs_merge(split) or any(file.depth < split.depth for file in split.files)


def needs_merge(split: Split) -> bool:
    """Whether rows of the split can be superseded or deleted by others of it. Files of one run share no key."""
    first = split.files[0]
    return any(file.delete_count or (file.sequence, file.run) != (first.sequence, first.run) for file in split.files)


def count_known_rows(files: Iterable[DataFile], partitions: dict[int, Partition], *, merges: bool) -> int | None:
    """How many rows files have that are all of their partitions', if that is known without reading them."""
    splits = arrange_splits(files, partitions, merges=merges)
    if merges and any(_needs_care(split) for split in splits):
        return None
    return sum(file.row_count for split in splits for file in split.files)


def base_splits(splits: Sequence[Split], *, is_newest: bool = True) -> tuple[list[Split], tuple[DataFile, ...]]:
    """The splits with what compactions have written alone, or with their oldest run where none has; the files that are
    left out. Where it is not the newest version alone that counts, all that is older than what a compaction has written
    is there, too."""
    kept = [replace(split, files=_base(split.files, is_newest)) for split in splits]
    left_out = {
        file.id: file
        for split, base in zip(splits, kept, strict=True)
        for file in split.files
        if file not in base.files
    }
    return kept, tuple(left_out.values())


def _base(files: Sequence[DataFile], is_newest: bool) -> tuple[DataFile, ...]:
    compacted = tuple(file for file in files if file.level > 0)
    if compacted and not is_newest:
        return tuple(files[: files.index(compacted[-1]) + 1])
    return compacted or oldest_run(files)


def oldest_run(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """`files` run from oldest to newest."""
    first = files[0]
    return tuple(file for file in files if (file.sequence, file.run) == (first.sequence, first.run))


def _bucket_splits(partition: Partition, files: list[DataFile]) -> Iterator[Split]:
    places = {file.id: place for place, file in enumerate(files)}
    shallow, deep = [file for file in files if file.depth == 0], [file for file in files if file.depth > 0]
    return _descend(partition, 0, 0, shallow, deep, places)


def _descend(
    partition: Partition,
    depth: int,
    prefix: int,
    shallow: list[DataFile],
    deep: list[DataFile],
    places: dict[int, int],
) -> Iterator[Split]:
    """Splits below one node of the prefix tree; `shallow` files cover all of it, `deep` ones lie below it.

    `places` tells each file's place in the order. A node looks at its own files only, not at all of the partition.
    """
    if not deep or _size(shallow) > _size(deep):
        found = sorted(shallow + deep, key=lambda file: places[file.id])
        if found:
            yield _split(partition, depth, prefix, found)
        return
    for child in (prefix * 2, prefix * 2 + 1):
        below = [file for file in deep if file.prefix >> (file.depth - depth - 1) == child]
        here = [file for file in below if file.depth == depth + 1]
        below = [file for file in below if file.depth > depth + 1]
        yield from _descend(partition, depth + 1, child, shallow + here, below, places)


def _split(partition: Partition, depth: int, prefix: int, files: list[DataFile]) -> Split:
    return Split(partition=partition, depth=depth, prefix=prefix, files=tuple(files))


def _size(files: list[DataFile]) -> int:
    return sum(file.size_bytes for file in files)


def compacted_files(
    files: Sequence[DataFile], partitions: Mapping[int, Partition], *, is_newest: bool = True
) -> list[DataFile]:
    """What `read_optimized` reads, as far as readers can that know whole files only: where files of it share keys, the
    compacted one counts; one with deletes is left out until a compaction has taken it in. What compactions have written
    may hold marks all the same, for what comes later. Where it is not the newest version alone that counts, only the
    oldest run says what rows were like."""
    splits = arrange_splits(files, dict(partitions), merges=True)
    own = (
        [split.files for split in base_splits(splits)[0]] if is_newest else [oldest_run(each.files) for each in splits]
    )
    found = {file.id: file for kept in own for file in kept if file.level or not file.delete_count}
    chosen: dict[int, list[DataFile]] = {}
    for file in sorted(found.values(), key=lambda each: (-each.level, -each.depth, each.id)):
        beside = chosen.setdefault(file.partition_id, [])
        if not any(_share_keys(file, other) for other in beside):
            beside.append(file)
    return sorted((file for beside in chosen.values() for file in beside), key=lambda each: each.id)


def _share_keys(one: DataFile, other: DataFile) -> bool:
    """Files of one run share none."""
    if (one.sequence, one.run) == (other.sequence, other.run):
        return False
    depth = min(one.depth, other.depth)
    return one.prefix >> (one.depth - depth) == other.prefix >> (other.depth - depth)


# Tasks


_TASKS_A_SLOT = 2
"""A few more tasks than run at once: who is done early takes another."""


def choose_task_count(total_bytes: int, part_count: int, parallelism: int) -> int:
    """How many tasks share so much work in so many parts."""
    wanted = max(_TASKS_A_SLOT * parallelism, -(-total_bytes // _TASK_BYTES))
    return max(1, min(part_count, wanted))


def choose_part_count(size_bytes: int, total_bytes: int, parallelism: int) -> int:
    """Into how many parts one split is cut, so that it does not keep the whole job waiting."""
    task_bytes = max(1, min(_TASK_BYTES, total_bytes // (_TASKS_A_SLOT * parallelism)))
    return max(1, round(size_bytes / task_bytes)) if size_bytes > 2 * task_bytes else 1


def balance(sizes: Sequence[int], task_count: int) -> list[list[int]]:
    """The places of the sizes, by task, of about equal weight: the heaviest first, each to the lightest task."""
    dealt: list[list[int]] = [[] for _ in range(task_count)]
    lightest = [(0, number) for number in range(task_count)]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        weight, number = lightest[0]
        dealt[number].append(place)
        heapq.heapreplace(lightest, (weight + max(1, sizes[place]), number))
    return [places for places in dealt if places]
