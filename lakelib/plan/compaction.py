"""Pure. Decides what a compaction rewrites: units, and the splits in which the work of a unit is done.

A unit takes runs of one subtree of hash prefixes that follow each other in age, and puts one run in their place, of the
age of the newest. So it must take every run between its oldest and its newest that overlaps them: a file that is
shallower than others makes one unit with all that lies below it.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile, Partition, Split
from lakelib.model.options import MIB, TableOptions
from lakelib.model.table import Buckets
from lakelib.plan.layout import choose_compacted_depth, estimate_bytes
from lakelib.plan.scan import gather_files

Age = tuple[int, int]
"""The order of runs: (sequence, run). Files of one age share no key."""

READ_BYTES = 320 * MIB
"""What a row group of each run may take in memory together: by that it is decided how many runs a unit merges. Where
there are more, groups of runs are merged first, and what came of them in the next round."""

_FEWEST_RUNS = 8
_MOST_RUNS = 64
"""Of more runs windows become so small that reading a run twice is quicker."""

MOST_SPREAD = 4
"""A split is parted into at most two to the power of so many buckets in one pass."""

_SIMILAR = 1.25
"""A run is merged along if it is not larger than so many times all that is newer and merged."""

_FAR_TOO_SMALL = 8
"""Buckets are joined if even of so many times their size nobody would part them: dropping old rows, as a compaction
does, must not make the next one join what it has parted."""

_WORTH_PARTING = 4
"""A subtree is parted before it is read if the files to be read by both halves are so many times smaller."""


class Goal(Enum):
    """What a compaction is to reach."""

    DUE = "due"
    FULL = "full"
    """As little to read as can be."""
    LAYOUT = "layout"
    """Each bucket's files as deep as their size asks for, by what the table says of buckets now."""

    @classmethod
    def of(cls, *, full: bool, to_layout: bool) -> "Goal":
        return cls.LAYOUT if to_layout else cls.FULL if full else cls.DUE


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRules:
    """What a planner has to know of a table."""

    merges: bool
    """Whether the table has a primary key."""
    keeps_deletes: bool
    """Whether delete marks stay for good: those of a table whose rows have a sequence of their own."""
    buckets: Buckets
    options: TableOptions
    row_bytes: int
    """About what a row takes in memory, at least."""
    outdated: frozenset[int] = frozenset()
    """Versions of the schema whose files are to be rewritten, for they call columns by other names."""
    misleading: frozenset[int] = frozenset()
    """Files that are to be rewritten, for other readers miss rows by what these say of themselves."""

    def wants_anew(self, file: DataFile) -> bool:
        """Whether the file is to be rewritten, whatever it lies beside."""
        return file.schema_id in self.outdated or file.id in self.misleading


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Files that one run takes the place of: all or none. `files` run from oldest to newest."""

    partition: Partition
    depth: int
    prefix: int
    files: tuple[DataFile, ...]
    output_depth: int
    drops_deletes: bool
    is_step: bool = False
    """Whether there are more runs than can be merged at once: more is to be done afterwards."""

    @cached_property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @cached_property
    def run_count(self) -> int:
        return len({age_of(file) for file in self.files})

    @property
    def sequence(self) -> int:
        return age_of(self.files[-1])[0]

    @property
    def run(self) -> int:
        return self.files[-1].run

    @property
    def level(self) -> int:
        return 1 + max(file.level for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """Units, the largest first, and how many cannot be done now: staged commits are to remove some of their files."""

    units: tuple[Unit, ...]
    blocked: int
    is_last_round: bool
    """Whether nothing is left to be done after these units."""


def plan_compaction(
    files: Iterable[DataFile],
    partitions: Mapping[int, Partition],
    rules: CompactionRules,
    *,
    goal: Goal,
    claimed: Collection[int] = (),
) -> CompactionPlan:
    """What is to be rewritten to get there. `files` are live ones, oldest first within a partition;
    those whose ids are `claimed` stay as they are."""
    by_partition: dict[int, list[DataFile]] = defaultdict(list)
    for file in files:
        by_partition[file.partition_id].append(file)
    units: list[Unit] = []
    for partition_id, found in by_partition.items():
        partition = partitions[partition_id]
        if rules.merges:
            units += _merging_units(partition, found, rules, goal)
        else:
            units += _packing_units(partition, found, rules, goal is Goal.FULL, claimed)
    free = [unit for unit in units if not any(file.id in claimed for file in unit.files)]
    free.sort(key=lambda unit: -unit.size_bytes)
    is_last_round = not any(unit.is_step for unit in free)
    return CompactionPlan(units=tuple(free), blocked=len(units) - len(free), is_last_round=is_last_round)


def plan_splits(unit: Unit) -> list[Split]:
    """What is merged together: parts of the unit that share no key. A file that is shallower than its split is read by
    every split below it, which takes its own rows by hash. None is deeper than the unit's output."""
    if unit.depth == unit.output_depth:
        return [_split(unit, unit.depth, unit.prefix, unit.files)]
    return list(_part(unit, unit.depth, unit.prefix, unit.files))


def age_of(file: DataFile) -> Age:
    assert file.sequence is not None, "a file that is live has a sequence"
    return file.sequence, file.run


# Tables that merge by key


def _merging_units(
    partition: Partition, files: Sequence[DataFile], rules: CompactionRules, goal: Goal
) -> Iterator[Unit]:
    takes_all = goal is not Goal.DUE
    for group in _overlapping_groups(files, _joint_depth(files, rules, goal) if takes_all else None):
        for part in _chosen(group, rules, goal):
            for inputs in _overlapping_groups(part, group.depth if takes_all else None):
                yield from _units(partition, inputs, group.files, rules, goal)


def _chosen(group: "_Group", rules: CompactionRules, goal: Goal) -> list[Sequence[DataFile]]:
    """Which of the files that share keys are rewritten: runs that follow each other."""
    if goal is Goal.FULL or any(map(rules.wants_anew, group.files)):
        return [group.files]
    if goal is Goal.DUE:
        return _due_files(group.files, rules.options)
    wanted = max(group.depth, _wanted_depth(group.files, group.depth, rules))
    return [group.files] if any(file.depth != wanted for file in _base_files(group.files)) else []


def _wanted_depth(files: Sequence[DataFile], depth: int, rules: CompactionRules) -> int:
    """How deep the files below a prefix of that depth go by their size."""
    return choose_compacted_depth(_estimate(files, rules) << depth, rules.buckets, rules.options)


def _units(
    partition: Partition, inputs: "_Group", around: Sequence[DataFile], rules: CompactionRules, goal: Goal
) -> Iterator[Unit]:
    steps = _steps(inputs.files, rules)
    for files in steps:
        oldest = age_of(files[0])
        drops_deletes = not rules.keeps_deletes and not any(
            age_of(file) < oldest and _overlaps(file, inputs.depth, inputs.prefix) for file in around
        )
        output_depth = max(inputs.depth, _wanted_depth(files, inputs.depth, rules))
        unit = Unit(
            partition=partition,
            depth=inputs.depth,
            prefix=inputs.prefix,
            files=tuple(files),
            output_depth=output_depth,
            drops_deletes=drops_deletes,
            is_step=len(steps) > 1,
        )
        if _gains(unit, rules, goal):
            yield unit


def _gains(unit: Unit, rules: CompactionRules, goal: Goal) -> bool:
    """Whether readers have less to do once the unit is done, or it has come to the layout."""
    if stack_height(unit.files) > 1 or any(map(rules.wants_anew, unit.files)):
        return True
    if goal is Goal.LAYOUT:
        return any(file.depth != unit.output_depth for file in unit.files)
    if goal is Goal.DUE:
        return False
    marks = any(file.delete_count for file in unit.files)
    return (unit.drops_deletes and marks) or _is_far_off(unit, rules)


def _is_far_off(unit: Unit, rules: CompactionRules) -> bool:
    """Whether its files are much larger than buckets need be, or far too small."""
    whole_bytes = _estimate(unit.files, rules) << unit.depth
    shallowest = choose_compacted_depth(whole_bytes // 2, rules.buckets, rules.options)
    deepest = choose_compacted_depth(_FAR_TOO_SMALL * whole_bytes, rules.buckets, rules.options)
    return any(not shallowest <= file.depth <= max(deepest, unit.depth) for file in unit.files)


def _joint_depth(files: Sequence[DataFile], rules: CompactionRules, goal: Goal) -> int | None:
    """The depth at which buckets are joined that are far too small to be apart, or to go to the layout too small;
    None if there are none."""
    whole_bytes = _estimate(files, rules)
    margin = 1 if goal is Goal.LAYOUT else _FAR_TOO_SMALL
    deepest = choose_compacted_depth(margin * whole_bytes, rules.buckets, rules.options)
    if all(file.depth <= deepest for file in files):
        return None
    return choose_compacted_depth(whole_bytes, rules.buckets, rules.options)


def _estimate(files: Iterable[DataFile], rules: CompactionRules) -> int:
    return sum(estimate_bytes(file, rules.row_bytes) for file in files)


def _due_files(files: Sequence[DataFile], options: TableOptions) -> list[Sequence[DataFile]]:
    """The newest files that should be one run, as far back as it pays; nothing where nothing is due."""
    height = stack_height(files)
    if height < 2:
        return []
    base_bytes = sum(file.size_bytes for file in _base_files(files))
    delta_bytes = sum(file.size_bytes for file in files) - base_bytes
    if delta_bytes * 100 >= options.compact_delta_percent * base_bytes:
        return [files]
    if height < options.compact_runs:
        return []
    ages = sorted({age_of(file) for file in files}, reverse=True)
    count = _least_count(files, ages, options.compact_runs)
    sizes: dict[Age, int] = defaultdict(int)
    for file in files:
        sizes[age_of(file)] += file.size_bytes
    count = _widen([sizes[age] for age in ages], count)
    return [[file for file in files if age_of(file) >= ages[count - 1]]]


def _least_count(files: Sequence[DataFile], ages: Sequence[Age], runs: int) -> int:
    """How many of the newest ages must become one run for fewer than `runs` to be left over any key."""

    def is_enough(count: int) -> bool:
        return stack_height([file for file in files if age_of(file) < ages[count - 1]]) + 1 < runs

    return 2 + bisect_left(range(2, len(ages)), True, key=is_enough)


def _widen(sizes: Sequence[int], count: int) -> int:
    """Takes more, from newest to oldest, as long as the next is not much larger than all that is taken."""
    taken = sum(sizes[:count])
    while count < len(sizes) and sizes[count] <= _SIMILAR * taken:
        taken += sizes[count]
        count += 1
    return count


def stack_height(files: Iterable[DataFile]) -> int:
    """The most runs that a key can be in."""
    ages: dict[tuple[int, int], set[Age]] = defaultdict(set)
    for file in files:
        ages[file.depth, file.prefix].add(age_of(file))
    below: dict[tuple[int, int], int] = defaultdict(int)
    for depth in range(max((depth for depth, _ in ages), default=0), -1, -1):
        for place in {place for place in (*ages, *below) if place[0] == depth}:
            height = len(ages.get(place, ())) + below.pop(place, 0)
            if depth == 0:
                return height
            parent = (depth - 1, place[1] >> 1)
            below[parent] = max(below[parent], height)
    return 0


def _base_files(files: Sequence[DataFile]) -> list[DataFile]:
    """The files that no older one overlaps. `files` run from oldest to newest."""
    found: list[DataFile] = []
    oldest_at: dict[tuple[int, int], Age] = {}
    oldest_within: dict[tuple[int, int], Age] = {}
    for file in files:
        age = age_of(file)
        places = [(depth, file.prefix >> (file.depth - depth)) for depth in range(file.depth + 1)]
        overlapped = [oldest_within.get(places[-1], age), *(oldest_at.get(place, age) for place in places)]
        if all(other == age for other in overlapped):
            found.append(file)
        oldest_at.setdefault(places[-1], age)
        for place in places:
            oldest_within.setdefault(place, age)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The files below one hash prefix. No file of the partition that is not among them overlaps them."""

    depth: int
    prefix: int
    files: list[DataFile]


def _overlapping_groups(files: Sequence[DataFile], joint_depth: int | None) -> list[_Group]:
    """The files in groups that share no key, each under its shallowest file. With `joint_depth` groups that lie deeper
    are joined to the groups that they make at that depth."""
    places = {(file.depth, file.prefix) for file in files}
    if joint_depth is not None:
        places = {(min(depth, joint_depth), prefix >> max(0, depth - joint_depth)) for depth, prefix in places}
    groups: dict[tuple[int, int], list[DataFile]] = defaultdict(list)
    for file in files:
        above = ((depth, file.prefix >> (file.depth - depth)) for depth in range(file.depth + 1))
        groups[next(place for place in above if place in places)].append(file)
    return [_Group(depth=depth, prefix=prefix, files=found) for (depth, prefix), found in groups.items()]


def _steps(files: Sequence[DataFile], rules: CompactionRules) -> list[list[DataFile]]:
    """The files, by age, in steps of about equally many runs, of no more than can be merged at once. Runs of small
    files that are read together count as one."""
    place_of: dict[Age, int] = {}
    for place, gathered in enumerate(gather_files(sorted(files, key=age_of))):
        for file in gathered:
            place_of.setdefault(age_of(file), place)
    places = sorted(set(place_of.values()))
    row_bytes = _estimate(files, rules) // sum(file.row_count for file in files)
    fitting = READ_BYTES // (1 + row_bytes * rules.options.row_group_rows)
    most = min(_MOST_RUNS, max(_FEWEST_RUNS, fitting))
    step_count = -(-len(places) // most)
    runs_each = -(-len(places) // step_count)
    steps: list[list[DataFile]] = [[] for _ in range(step_count)]
    for file in files:
        steps[bisect_left(places, place_of[age_of(file)]) // runs_each].append(file)
    return steps


def _overlaps(file: DataFile, depth: int, prefix: int) -> bool:
    shared = min(file.depth, depth)
    return file.prefix >> (file.depth - shared) == prefix >> (depth - shared)


# Splits of a unit


def _part(unit: Unit, depth: int, prefix: int, files: Sequence[DataFile]) -> Iterator[Split]:
    here = [file for file in files if file.depth <= depth]
    below_bytes = sum(file.size_bytes for file in files) - sum(file.size_bytes for file in here)
    here_bytes = sum(file.size_bytes for file in here)
    too_wide = unit.output_depth - depth > MOST_SPREAD
    if depth == unit.output_depth or not (too_wide or (below_bytes and here_bytes * _WORTH_PARTING <= below_bytes)):
        yield _split(unit, depth, prefix, files)
        return
    for child in (prefix * 2, prefix * 2 + 1):
        found = [file for file in files if _overlaps(file, depth + 1, child)]
        if found:
            yield from _part(unit, depth + 1, child, found)


def _split(unit: Unit, depth: int, prefix: int, files: Sequence[DataFile]) -> Split:
    return Split(partition=unit.partition, depth=depth, prefix=prefix, files=tuple(files))


# Append tables


def _packing_units(
    partition: Partition,
    files: Sequence[DataFile],
    rules: CompactionRules,
    full: bool,
    claimed: Collection[int],
) -> Iterator[Unit]:
    """Small files that follow each other become one, so that rows keep their order."""
    target_bytes = rules.options.target_file_bytes

    def is_chosen(file: DataFile) -> bool:
        return (2 * _estimate((file,), rules) <= target_bytes or rules.wants_anew(file)) and file.id not in claimed

    for stretch in _stretches(files, is_chosen):
        takes_all = full or any(map(rules.wants_anew, stretch))
        for pack in _packs(stretch if takes_all else _due_stretch(stretch, rules), rules):
            if len(pack) > 1 or any(map(rules.wants_anew, pack)):
                yield Unit(
                    partition=partition, depth=0, prefix=0, files=tuple(pack), output_depth=0, drops_deletes=False
                )


def _stretches(files: Sequence[DataFile], fits: Callable[[DataFile], bool]) -> Iterator[list[DataFile]]:
    stretch: list[DataFile] = []
    for file in files:
        if fits(file):
            stretch.append(file)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _due_stretch(stretch: Sequence[DataFile], rules: CompactionRules) -> Sequence[DataFile]:
    """The newest files, as far back as they are of similar size, once they are many."""
    runs = rules.options.compact_runs
    if len(stretch) < runs:
        return ()
    sizes = [file.size_bytes for file in reversed(stretch)]
    return stretch[len(stretch) - _widen(sizes, len(stretch) - runs + 2) :]


def _packs(files: Sequence[DataFile], rules: CompactionRules) -> Iterator[list[DataFile]]:
    """The files, in order, in packs that make about one file of the target size."""
    pack: list[DataFile] = []
    pack_bytes = 0
    for file in files:
        file_bytes = _estimate((file,), rules)
        if pack and pack_bytes + file_bytes > rules.options.target_file_bytes:
            yield pack
            pack, pack_bytes = [], 0
        pack.append(file)
        pack_bytes += file_bytes
    if pack:
        yield pack
