"""Pure. Decides which files hold, each row once, the newest compacted state of a snapshot."""

from collections.abc import Mapping, Sequence

from lakelib.model.files import DataFile, Partition
from lakelib.plan.scan import arrange_splits, base_splits, oldest_run


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
