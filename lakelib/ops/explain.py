"""Use cases: a scan explains itself, and changes do."""

from dataclasses import replace

from lakelib.catalog import files
from lakelib.dataclass import dataclass
from lakelib.model.changes import Way
from lakelib.model.predicate import Predicate
from lakelib.model.text import counted
from lakelib.ops.changes import ChangesPlan
from lakelib.ops.read import ScanPlan
from lakelib.ops.runtime import Runtime
from lakelib.plan.describe import describe_predicate
from lakelib.plan.prune import may_ever_match
from lakelib.plan.scan import needs_merge


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """What one rule left out."""

    rule: str
    files_pruned: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """What a scan reads. `str()` and `repr()` of it are text for people."""

    table: str
    snapshot_id: int | None
    columns: tuple[str, ...]
    where: str
    partitions: int
    partitions_total: int
    files: int
    files_total: int
    size_bytes: int
    splits: int
    splits_merged: int
    pruned: tuple[Pruning, ...]

    def __str__(self) -> str:
        lines = [
            f"scan of {self.table} at snapshot {self.snapshot_id}",
            f"  columns     {', '.join(self.columns)}",
            f"  where       {self.where or '(all rows)'}",
            f"  partitions  {self.partitions} of {self.partitions_total}",
            f"  files       {self.files} of {self.files_total} ({counted(self.size_bytes, 'byte')})",
            f"  splits      {self.splits}, of which {self.splits_merged}"
            f" {'merges' if self.splits_merged == 1 else 'merge'} several runs or deletes",
        ]
        lines += [f"  pruned      {counted(pruning.files_pruned, 'file')} by {pruning.rule}" for pruning in self.pruned]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def explain_scan(runtime: Runtime, plan: ScanPlan) -> Explanation:
    """Counts, rule by rule, the files that the scan leaves out."""
    everything = replace(
        plan.query, partition_predicate=None, file_predicate=None, hash_prefixes=None, with_bounds=False
    )
    steps: tuple[tuple[str, files.FileQuery], ...] = (
        ("partition values", replace(everything, partition_predicate=plan.query.partition_predicate)),
        ("key hash", replace(plan.query, file_predicate=None)),
        ("column bounds", plan.query),
    )
    if _is_never_true(plan):
        steps = (("a predicate that no row can match", plan.query),)
    total = files.load_files(runtime.catalog, everything)
    left = len(total.files)
    pruned = []
    for rule, query in steps:
        found = len(files.load_files(runtime.catalog, query).files)
        pruned.append(Pruning(rule=rule, files_pruned=left - found))
        left = found
    read = [file for split in plan.splits for file in split.files]
    distinct = {file.id: file for file in read}
    pruned.append(Pruning(rule="column bounds of files that need no merge", files_pruned=left - len(distinct)))
    return Explanation(
        table=plan.table.full_name,
        snapshot_id=plan.snapshot_id or None,
        columns=tuple(column.name for column in plan.target.columns),
        where=_shown(plan.predicate),
        partitions=len({split.partition.id for split in plan.splits}),
        partitions_total=len(total.partitions),
        files=len(distinct),
        files_total=len(total.files),
        size_bytes=sum(file.size_bytes for file in distinct.values()),
        splits=len(plan.splits),
        splits_merged=sum(needs_merge(split) for split in plan.splits),
        pruned=tuple(pruning for pruning in pruned if pruning.files_pruned),
    )


def _is_never_true(plan: ScanPlan) -> bool:
    """Whether the predicate excludes itself: it is FALSE or NULL anyway, or it asks for keys and leaves none."""
    return plan.query.hash_prefixes == () or (plan.predicate is not None and not may_ever_match(plan.predicate))


def _shown(predicate: Predicate | None) -> str:
    return "" if predicate is None else describe_predicate(predicate)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ChangesExplanation:
    """What is read to tell the changes. `str()` and `repr()` of it are text for people."""

    table: str
    view: str
    after_id: int
    until_id: int
    columns: tuple[str, ...]
    where: str
    ways: tuple[str, ...]
    """How it is found out: from the rows of the commits' own files, or by holding both snapshots against each other."""
    partitions: int
    files: int
    size_bytes: int
    splits: int
    files_moved: int
    """Files that came or went in the range, those of compactions too."""
    files_pruned: int
    """Of these how many the predicate leaves out."""

    def __str__(self) -> str:
        lines = [
            f"changes ({self.view}) of {self.table} after snapshot {self.after_id} until {self.until_id}",
            f"  columns     {', '.join(self.columns)}",
            f"  where       {self.where or '(all changes)'}",
            f"  found in    {'; '.join(self.ways) or 'nothing to read'}",
            f"  partitions  {self.partitions}",
            f"  files       {self.files} ({counted(self.size_bytes, 'byte')})",
            f"  splits      {self.splits}",
        ]
        if self.files_pruned:
            lines.append(f"  pruned      {counted(self.files_pruned, 'file')} of {self.files_moved} by the predicate")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def explain_changes(runtime: Runtime, plan: ChangesPlan) -> ChangesExplanation:
    """Counts what is read, and what is not."""
    everything = replace(plan.query, partition_predicate=None, file_predicate=None, hash_prefixes=None)
    moved = len(files.load_files(runtime.catalog, everything).files)
    read = {file.id: file for split in plan.splits for file in split.files}
    return ChangesExplanation(
        table=plan.table.full_name,
        view=plan.range.view.value,
        after_id=plan.bounds[0],
        until_id=plan.bounds[1],
        columns=tuple(plan.target.output_schema.names),
        where="" if plan.predicate is None else describe_predicate(plan.predicate),
        ways=tuple(way.value for way in Way if any(split.way is way for split in plan.splits)),
        partitions=len({split.partition.id for split in plan.splits}),
        files=len(read),
        size_bytes=sum(file.size_bytes for file in read.values()),
        splits=len(plan.splits),
        files_moved=moved,
        files_pruned=moved - len(files.load_files(runtime.catalog, plan.query).files),
    )
