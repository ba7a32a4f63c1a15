"""Compaction plans: whatever files there are, a unit leaves no run out that lies between those that it takes."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from lakelib.model.files import ColumnBounds, DataFile, Partition
from lakelib.model.options import TableOptions
from lakelib.model.table import Buckets
from lakelib.plan.compaction import (
    MOST_SPREAD,
    CompactionRules,
    Goal,
    Unit,
    age_of,
    plan_compaction,
    plan_splits,
    stack_height,
)
from lakelib.plan.layout import deepest_split

DEPTH = 6
PARTITION = Partition(id=1, key=(), path="")

MODES = st.sampled_from(
    [Buckets(mode="fixed", fixed_depth=depth) for depth in (0, 2, 5)]
    + [Buckets(mode=mode) for mode in ("dynamic", "postpone")]
)


@st.composite
def tables(draw: st.DrawFn) -> list[DataFile]:
    """Runs from oldest to newest, each in some of the buckets of one depth."""
    files: list[DataFile] = []
    for sequence in range(1, draw(st.integers(0, 9)) + 1):
        for run in range(draw(st.integers(1, 2))):
            depth = draw(st.integers(0, DEPTH))
            prefixes = draw(st.sets(st.integers(0, (1 << depth) - 1), min_size=1, max_size=4))
            files += [
                file_of(len(files) + place, depth, prefix, sequence, run, draw(st.sampled_from([1, 50, 3000])))
                for place, prefix in enumerate(sorted(prefixes))
            ]
    return files


def file_of(number: int, depth: int, prefix: int, sequence: int, run: int, kilobytes: int) -> DataFile:
    return DataFile(
        id=number,
        path="",
        partition_id=1,
        depth=depth,
        prefix=prefix,
        run=run,
        level=0,
        row_count=10,
        delete_count=number % 2,
        size_bytes=kilobytes * 1000,
        schema_id=1,
        sequence=sequence,
        added_snapshot=sequence,
        removed_snapshot=None,
        bounds=ColumnBounds(),
    )


@st.composite
def rules(draw: st.DrawFn, *, merges: bool = True) -> CompactionRules:
    options = TableOptions(
        compact_runs=draw(st.integers(2, 6)),
        compact_delta_percent=draw(st.sampled_from([1, 50, 10_000])),
        min_bucket_file_bytes=draw(st.sampled_from([0, 200_000, 3_000_000])),
        target_file_bytes=draw(st.sampled_from([200_000, 3_000_000])),
    )
    buckets = draw(MODES) if merges else Buckets(mode="none")
    return CompactionRules(
        merges=merges, keeps_deletes=draw(st.booleans()), buckets=buckets, options=options, row_bytes=9
    )


GOALS = st.sampled_from(Goal)


def plan(
    files: list[DataFile], given: CompactionRules, goal: Goal, claimed: frozenset[int] = frozenset()
) -> list[Unit]:
    return list(plan_compaction(files, {1: PARTITION}, given, goal=goal, claimed=claimed).units)


def keys_of(depth: int, prefix: int) -> set[int]:
    """The hashes, of as many bits as the deepest bucket has, that begin with the prefix."""
    deepest = 8
    return set(range(prefix << (deepest - depth), (prefix + 1) << (deepest - depth)))


def overlap(one: DataFile, other: DataFile) -> bool:
    return bool(keys_of(one.depth, one.prefix) & keys_of(other.depth, other.prefix))


@given(tables(), rules(), GOALS, st.sets(st.integers(0, 40)))
def test_no_run_between_those_of_a_unit_is_left_out(
    files: list[DataFile], given: CompactionRules, goal: Goal, claimed: set[int]
) -> None:
    units = plan(files, given, goal, frozenset(claimed))
    taken = [file.id for unit in units for file in unit.files]
    assert len(taken) == len(set(taken))
    assert not claimed & set(taken)
    for unit in units:
        newest = age_of(unit.files[-1])
        assert (unit.sequence, unit.run) == newest == max(map(age_of, unit.files))
        others = [file for file in files if file not in unit.files]
        for file in unit.files:
            assert keys_of(file.depth, file.prefix) <= keys_of(unit.depth, unit.prefix)
            for other in others:
                assert not (overlap(file, other) and age_of(file) <= age_of(other) <= newest)


@given(tables(), rules(), GOALS)
def test_marks_are_dropped_only_where_nothing_older_lies_below(
    files: list[DataFile], given: CompactionRules, goal: Goal
) -> None:
    for unit in plan(files, given, goal):
        below = [
            file
            for file in files
            if file not in unit.files
            and age_of(file) < age_of(unit.files[-1])
            and keys_of(file.depth, file.prefix) & keys_of(unit.depth, unit.prefix)
        ]
        assert unit.drops_deletes == (not given.keeps_deletes and not below)


@given(tables(), rules(), GOALS)
def test_splits_hold_every_file_of_a_unit_wherever_its_keys_are_and_no_key_twice(
    files: list[DataFile], given: CompactionRules, goal: Goal
) -> None:
    for unit in plan(files, given, goal):
        splits = plan_splits(unit)
        covered = [keys_of(split.depth, split.prefix) for split in splits]
        assert sum(map(len, covered)) == len(set().union(*covered))
        for split, keys in zip(splits, covered, strict=True):
            assert list(split.files) == [file for file in unit.files if keys_of(file.depth, file.prefix) & keys]
            assert 0 <= unit.output_depth - split.depth <= MOST_SPREAD
        for file in unit.files:
            assert keys_of(file.depth, file.prefix) <= set().union(*covered)


@given(tables(), rules())
@example(
    [file_of(0, 5, 0, 1, 0, 1), file_of(1, 5, 1, 1, 0, 3000)],
    CompactionRules(
        merges=True,
        keeps_deletes=False,
        buckets=Buckets(mode="dynamic"),
        options=TableOptions(target_file_bytes=200_000, min_bucket_file_bytes=0),
        row_bytes=9,
    ),
)
def test_after_a_full_compaction_each_key_is_in_one_run_and_another_leaves_nothing_to_do(
    files: list[DataFile], given: CompactionRules
) -> None:
    """The first one may leave buckets at depths that fit them, and not the partition as a whole, where neighbours
    differ a thousandfold in size."""
    after, is_last = files, False
    for _ in range(4):
        done = plan_compaction(after, {1: PARTITION}, given, goal=Goal.FULL)
        after, is_last = applied(after, list(done.units)), done.is_last_round
        if is_last:
            break
    assert is_last
    assert stack_height(after) <= 1
    assert plan(after, given, Goal.DUE) == []
    after = applied(after, plan(after, given, Goal.FULL))
    assert stack_height(after) <= 1
    assert plan(after, given, Goal.FULL) == []
    assert plan(after, given, Goal.DUE) == []


@given(tables(), rules())
def test_after_a_compaction_fewer_runs_lie_over_any_key_than_make_one_due(
    files: list[DataFile], given: CompactionRules
) -> None:
    units = plan(files, given, Goal.DUE)
    if not any(unit.is_step for unit in units):
        assert stack_height(applied(files, units)) < max(2, given.options.compact_runs)


@given(tables(), rules())
def test_a_layout_is_reached_and_no_file_is_deeper_than_the_table_says(
    files: list[DataFile], given: CompactionRules
) -> None:
    """What was rewritten may be smaller than was thought, and be joined by the next one: not for ever."""
    after = files
    for _ in range(12):
        done = plan_compaction(after, {1: PARTITION}, given, goal=Goal.LAYOUT)
        if not done.units:
            break
        after = applied(after, list(done.units))
    assert plan(after, given, Goal.LAYOUT) == []
    rewritten = [file for file in after if file not in files]
    assert all(file.depth <= deepest_split(given.buckets) or given.buckets.mode == "postpone" for file in rewritten)
    if given.buckets.mode == "fixed" and not given.options.min_bucket_file_bytes:
        assert {file.depth for file in after if not _has_older(file, after)} <= {given.buckets.fixed_depth}


def _has_older(file: DataFile, files: list[DataFile]) -> bool:
    return any(overlap(file, other) and age_of(other) < age_of(file) for other in files)


def applied(files: list[DataFile], units: list[Unit]) -> list[DataFile]:
    """The files that are live once the units are done, and nothing was superseded."""
    left = [file for file in files if not any(file in unit.files for unit in units)]
    number = 1000
    for unit in units:
        buckets = 1 << (unit.output_depth - unit.depth)
        template = unit.files[-1]
        for place in range(buckets):
            left.append(
                replace(
                    template,
                    id=number,
                    depth=unit.output_depth,
                    prefix=unit.prefix * buckets + place,
                    size_bytes=unit.size_bytes // buckets,
                    row_count=max(1, sum(file.row_count for file in unit.files) // buckets),
                    delete_count=0 if unit.drops_deletes else template.delete_count,
                )
            )
            number += 1
    return sorted(left, key=lambda file: (age_of(file), file.prefix, file.id))


@given(tables(), rules(merges=False), st.booleans(), st.sets(st.integers(0, 40)))
def test_an_append_table_packs_files_that_follow_each_other(
    files: list[DataFile], given: CompactionRules, goal: Goal, claimed: set[int]
) -> None:
    ids = [file.id for file in files]
    for unit in plan(files, given, goal, frozenset(claimed)):
        taken = [file.id for file in unit.files]
        start = ids.index(taken[0])
        assert len(taken) > 1
        assert taken == ids[start : start + len(taken)]
        assert not claimed & set(taken)
        assert all(2 * 2 * file.size_bytes <= given.options.target_file_bytes for file in unit.files)
