"""What a compaction takes; tests/property/test_compaction_plan.py says what holds of any plan."""

from dataclasses import replace

import pytest

from lakelib.model.files import ColumnBounds, DataFile, Partition
from lakelib.model.options import MIB, TableOptions
from lakelib.model.table import Buckets
from lakelib.plan.compaction import CompactionRules, Goal, Unit, plan_compaction, plan_splits, stack_height

PARTITIONS = {number: Partition(id=number, key=(bytes([number]),), path=f"p={number}") for number in (1, 2)}
RULES = CompactionRules(
    merges=True,
    keeps_deletes=False,
    buckets=Buckets(mode="fixed", fixed_depth=2),
    options=TableOptions(compact_delta_percent=10_000),
    row_bytes=50,
)


def file_of(
    number: int,
    *,
    depth: int = 0,
    prefix: int = 0,
    size: int = 1,
    partition: int = 1,
    deletes: int = 0,
    sequence: int = 0,
) -> DataFile:
    """A file of so many megabytes (one byte, if none), by default of the commit of its number."""
    return DataFile(
        id=number,
        path="",
        partition_id=partition,
        depth=depth,
        prefix=prefix,
        run=0,
        level=0,
        row_count=1000,
        delete_count=deletes,
        size_bytes=size * MIB or 1,
        schema_id=1,
        sequence=sequence or number,
        added_snapshot=number,
        removed_snapshot=None,
        bounds=ColumnBounds(),
    )


def plan(*files: DataFile, rules: CompactionRules = RULES, full: bool = False) -> list[Unit]:
    return list(plan_compaction(files, PARTITIONS, rules, goal=Goal.of(full=full, to_layout=False)).units)


def shown(units: list[Unit]) -> list[tuple[int, int, list[int]]]:
    return [(unit.depth, unit.prefix, [file.id for file in unit.files]) for unit in units]


def base(sequence: int = 1, size: int = 100) -> list[DataFile]:
    """One file a bucket, of one run."""
    return [file_of(100 + prefix, depth=2, prefix=prefix, size=size, sequence=sequence) for prefix in range(4)]


def test_few_runs_are_left_alone() -> None:
    assert plan() == plan(file_of(1)) == plan(*base(), file_of(2), file_of(3), file_of(4)) == []


def test_many_small_runs_become_one_and_the_base_is_left_alone() -> None:
    assert shown(plan(*base(), *(file_of(number) for number in (2, 3, 4, 5)))) == [(0, 0, [2, 3, 4, 5])]


def test_a_run_that_is_much_larger_than_all_newer_ones_ends_what_is_taken() -> None:
    files = [file_of(2, size=50), file_of(3, size=2), file_of(4), file_of(5)]
    assert shown(plan(*base(), *files)) == [(0, 0, [3, 4, 5])]


def test_enough_runs_are_taken_whatever_their_sizes_are() -> None:
    files = [file_of(number, size=1 << 2 * (8 - number)) for number in range(2, 9)]
    assert stack_height(files) == 7
    assert shown(plan(*files)) == [(0, 0, [5, 6, 7, 8])]


def test_deltas_that_weigh_as_much_as_their_base_are_merged_into_it() -> None:
    rules = replace(RULES, options=TableOptions(compact_delta_percent=50))
    (unit,) = plan(*base(size=10), file_of(2, size=20), rules=rules)
    assert len(unit.files) == 5
    assert plan(*base(size=10), file_of(2, size=19), rules=rules) == []


def test_buckets_without_a_shallow_file_above_them_are_units_of_their_own() -> None:
    deltas = [
        file_of(10 * run + prefix, depth=2, prefix=prefix, sequence=run) for run in range(2, 7) for prefix in (1, 3)
    ]
    assert shown(plan(*base(), *deltas)) == [(2, 1, [21, 31, 41, 51, 61]), (2, 3, [23, 33, 43, 53, 63])]
    assert len(plan(*base(), *deltas, full=True)) == 2


def test_runs_in_other_buckets_do_not_count() -> None:
    files = [file_of(number, depth=2, prefix=number % 4) for number in range(2, 10)]
    assert plan(*base(), *files) == []


def test_partitions_are_apart() -> None:
    files = [file_of(number, partition=partition) for partition in (1, 2) for number in (2, 3, 4)]
    assert plan(*files) == []
    assert [unit.partition.id for unit in plan(*files, full=True)] == [1, 2]


def test_a_full_compaction_takes_all_and_leaves_alone_what_has_nothing_to_gain() -> None:
    (unit,) = plan(*base(), file_of(2), full=True)
    assert (unit.depth, unit.output_depth, len(unit.files)) == (0, 2, 5)
    assert plan(*base(), full=True) == []


@pytest.mark.parametrize("keeps_deletes", [False, True])
def test_marks_in_a_single_run_are_dropped_where_they_may_be(keeps_deletes: bool) -> None:
    files = [replace(file, delete_count=1) for file in base()]
    units = plan(*files, rules=replace(RULES, keeps_deletes=keeps_deletes), full=True)
    assert len(units) == (0 if keeps_deletes else 4)


def test_a_partial_merge_keeps_its_marks() -> None:
    (unit,) = plan(*base(), *(file_of(number, deletes=1) for number in (2, 3, 4, 5)))
    assert not unit.drops_deletes


def test_output_has_the_age_of_its_newest_run_and_a_higher_level() -> None:
    (unit,) = plan(replace(file_of(2), level=3), replace(file_of(5), run=4), full=True)
    assert (unit.sequence, unit.run, unit.level) == (5, 4, 4)


@pytest.mark.parametrize(
    ("mode", "size", "depth"), [("dynamic", 10, 0), ("dynamic", 700, 2), ("postpone", 10, 0), ("postpone", 3000, 4)]
)
def test_depth_follows_size(mode: str, size: int, depth: int) -> None:
    rules = replace(RULES, buckets=Buckets(mode=mode))
    (unit,) = plan(file_of(1, size=size), file_of(2, size=1), rules=rules, full=True)
    assert unit.output_depth == depth


def test_more_buckets_than_files_part_them_and_fewer_join_them() -> None:
    (unit,) = plan(*base(), rules=replace(RULES, buckets=Buckets(mode="fixed", fixed_depth=0)), full=True)
    assert (unit.depth, unit.output_depth) == (0, 0)
    units = plan(*base(), rules=replace(RULES, buckets=Buckets(mode="fixed", fixed_depth=4)), full=True)
    assert {(unit.depth, unit.output_depth) for unit in units} == {(2, 4)}


def test_small_shallow_files_are_read_by_several_splits_and_large_ones_once() -> None:
    (unit,) = plan(*base(), file_of(2, size=1), full=True)
    assert [split.depth for split in plan_splits(unit)] == [2, 2, 2, 2]
    (unit,) = plan(*base(), file_of(2, size=300), full=True)
    assert [split.depth for split in plan_splits(unit)] == [0]


def test_what_a_staged_commit_is_to_remove_is_left_alone_and_counted() -> None:
    files = [file_of(number, partition=partition) for partition in (1, 2) for number in (2, 3)]
    found = plan_compaction(files, PARTITIONS, RULES, goal=Goal.FULL, claimed={2})
    assert (len(found.units), found.blocked) == (0, 2)


APPENDS = replace(RULES, merges=False, buckets=Buckets(mode="none"))


def test_an_append_table_packs_small_files_once_they_are_many() -> None:
    assert plan(*(file_of(number) for number in range(1, 5)), rules=APPENDS) == []
    assert shown(plan(*(file_of(number) for number in range(1, 6)), rules=APPENDS)) == [(0, 0, [1, 2, 3, 4, 5])]
    assert shown(plan(file_of(1), file_of(2), rules=APPENDS, full=True)) == [(0, 0, [1, 2])]


def test_files_that_are_packed_already_wait_until_as_much_has_come() -> None:
    files = [file_of(1, size=30), *(file_of(number) for number in range(2, 7))]
    assert shown(plan(*files, rules=APPENDS)) == [(0, 0, [2, 3, 4, 5, 6])]


def test_large_files_of_an_append_table_stay_where_they_are() -> None:
    files = [file_of(1), file_of(2), file_of(3, size=100), file_of(4), file_of(5)]
    assert shown(plan(*files, rules=APPENDS, full=True)) == [(0, 0, [1, 2]), (0, 0, [4, 5])]


def test_a_thousand_runs_of_small_files_are_merged_at_once() -> None:
    files = [replace(file_of(number, size=0), row_count=10) for number in range(1, 1001)]
    small = plan_compaction(files, PARTITIONS, RULES, goal=Goal.FULL)
    assert (len(small.units), small.is_last_round) == (1, True)

    large = plan_compaction([file_of(number) for number in range(1, 1001)], PARTITIONS, RULES, goal=Goal.FULL)
    assert len(large.units) > 1
    assert not large.is_last_round


def test_planning_twice_the_small_files_of_an_append_table_is_about_twice_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimates = 0

    def count(file: DataFile, row_bytes: int) -> int:
        nonlocal estimates
        estimates += 1
        return file.size_bytes

    monkeypatch.setattr("lakelib.plan.compaction.estimate_bytes", count)
    done = []
    for files in (200, 400):
        estimates = 0
        plan(
            *(file_of(number, size=0) for number in range(1, files + 1)), rules=replace(RULES, merges=False), full=True
        )
        done.append(estimates)
    assert done[1] < 3 * done[0]


@pytest.mark.parametrize("merges", [True, False])
def test_files_that_call_columns_otherwise_are_due_however_few(merges: bool) -> None:
    outdated = replace(RULES, merges=merges, outdated=frozenset((1,)))
    files = [file_of(1, size=100), replace(file_of(2, partition=2), schema_id=2)]

    assert [shown(plan(*files, rules=rules)) for rules in (RULES, outdated)] == [[], [(0, 0, [1])]]
