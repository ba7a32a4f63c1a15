"""Which files hold a compacted state by themselves."""

from dataclasses import replace

from lakelib.plan.scan import compacted_files
from tests.unit.plan.test_compaction import PARTITIONS, file_of


def test_the_oldest_run_counts_until_there_is_a_compacted_one() -> None:
    oldest, later = file_of(1), file_of(2)
    compacted = replace(file_of(3), level=1)

    assert compacted_files([oldest, later], PARTITIONS) == [oldest]
    assert compacted_files([compacted, file_of(4)], PARTITIONS) == [compacted]


def test_a_file_with_deletes_is_left_out() -> None:
    assert compacted_files([file_of(1, deletes=1), file_of(2)], PARTITIONS) == []


def test_of_files_that_share_keys_the_compacted_one_counts() -> None:
    everywhere = file_of(1, size=100)
    compacted = replace(file_of(2, depth=1, prefix=1, size=200), level=1)

    assert compacted_files([everywhere, compacted], PARTITIONS) == [compacted]
    assert compacted_files([file_of(3, partition=1), file_of(4, partition=2)], PARTITIONS) == [
        file_of(3, partition=1),
        file_of(4, partition=2),
    ]
