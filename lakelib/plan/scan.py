"""Pure. Decides which files are read together: the splits of a scan."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from lakelib.model.files import DataFile, Partition, Split


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


def needs_merge(split: Split) -> bool:
    """Whether rows of the split can be superseded or deleted by others of it. Files of one run share no key."""
    first = split.files[0]
    return any(file.delete_count or (file.sequence, file.run) != (first.sequence, first.run) for file in split.files)


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
