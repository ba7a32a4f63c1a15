"""Use case: changes explain themselves."""

from dataclasses import replace

from lakelib.catalog import files
from lakelib.dataclass import dataclass
from lakelib.model.changes import Way
from lakelib.model.text import counted
from lakelib.ops.changes import ChangesPlan
from lakelib.ops.runtime import Runtime
from lakelib.plan.describe import describe_predicate


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
