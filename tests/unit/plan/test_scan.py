"""Which files are read together."""

from collections import Counter
from dataclasses import replace
from typing import Any

from lakelib.model.files import ColumnBounds, DataFile, Partition, Split
from lakelib.plan.scan import SMALL_FILE_BYTES, arrange_splits, gather_files, gather_splits

PARTITION = Partition(id=1, key=(), path="")


def file_of(number: int, depth: int, prefix: int, size_bytes: int = 10) -> DataFile:
    return DataFile(
        id=number,
        path=f"{number}.parquet",
        partition_id=1,
        depth=depth,
        prefix=prefix,
        run=0,
        level=0,
        row_count=1,
        delete_count=0,
        size_bytes=size_bytes,
        schema_id=1,
        sequence=number,
        added_snapshot=number,
        removed_snapshot=None,
        bounds=ColumnBounds(),
    )


def shown(splits: list[Split]) -> list[tuple[int, int, list[int]]]:
    return [(split.depth, split.prefix, [file.id for file in split.files]) for split in splits]


def test_a_shallow_file_is_read_by_every_split_below_it_in_the_order_of_the_files() -> None:
    files = [file_of(9, 1, 1, 40), file_of(2, 0, 0, 5), file_of(7, 2, 1, 40), file_of(1, 0, 0, 5), file_of(3, 2, 0, 40)]
    assert shown(arrange_splits(files, {1: PARTITION}, merges=True)) == [
        (2, 0, [2, 1, 3]),
        (2, 1, [2, 7, 1]),
        (1, 1, [9, 2, 1]),
    ]


def test_splits_are_joined_where_shallow_files_outweigh_deep_ones() -> None:
    files = [file_of(1, 2, 0), file_of(2, 1, 0, 50), file_of(3, 2, 1), file_of(4, 1, 1)]
    assert shown(arrange_splits(files, {1: PARTITION}, merges=True)) == [(1, 0, [1, 2, 3]), (1, 1, [4])]


def test_small_files_that_follow_each_other_are_read_together() -> None:
    large = SMALL_FILE_BYTES + 1
    files = [file_of(number, 0, 0, large if number in (3, 4, 7) else 10) for number in range(9)]
    gathered = [[file.id for file in together] for together in gather_files(files)]
    assert gathered == [[0, 1, 2], [3], [4], [5, 6], [7], [8]]


def test_what_is_read_together_is_bounded_in_files_rows_and_bytes() -> None:
    small, long, heavy = (
        [file_of(number, 0, 0, size_bytes) for number in range(1000)] for size_bytes in (10, 20, SMALL_FILE_BYTES)
    )
    for files, most in ((small, 256), (heavy, 16), ([replace(file, row_count=3000) for file in long], 5)):
        gathered = list(gather_files(files))
        assert [file for together in gathered for file in together] == files
        assert max(map(len, gathered)) == most


def test_splits_of_one_small_file_are_read_together_unless_other_rows_decide_about_theirs() -> None:
    def split(*files: DataFile, depth: int = 0) -> Split:
        return Split(partition=PARTITION, depth=depth, prefix=0, files=files)

    plain, marks = file_of(1, 0, 0), replace(file_of(1, 0, 0), delete_count=1)
    splits = [split(plain), split(plain), split(plain, plain), split(plain), split(marks), split(plain, depth=1)]
    assert [len(together) for together in gather_splits(splits, merges=True)] == [2, 1, 1, 1, 1]
    assert [len(together) for together in gather_splits(splits, merges=False)] == [2, 1, 3]


def test_twice_the_buckets_are_about_twice_the_work() -> None:
    assert _looks(2048) < 3 * _looks(1024)


def _looks(buckets: int) -> int:
    """How often a plan looks at files of a table with so many buckets."""
    looks: Counter[str] = Counter()

    class Watched:
        def __init__(self, file: DataFile) -> None:
            self._file = file

        def __getattr__(self, name: str) -> Any:
            looks[name] += 1
            return getattr(self._file, name)

    depth = buckets.bit_length() - 1
    files: Any = [Watched(file_of(prefix, depth, prefix)) for prefix in range(buckets)]
    assert len(arrange_splits(files, {1: PARTITION}, merges=True)) == buckets
    return looks.total()
