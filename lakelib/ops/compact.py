"""Use case: a table's runs become fewer. No answer changes, and no writer is in the way or kept waiting.

Step by step: what is due at the head; under a lease, the runs of each unit are merged and written anew, in process or
by Spark's tasks; the new files are staged and published in place of the old ones. A unit whose files others have taken
meanwhile is lost: its new files are deleted, and what is then due is planned anew.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from lakelib.catalog import commits, files, retention, tables
from lakelib.catalog.roles import require_right
from lakelib.dataclass import dataclass
from lakelib.errors import ExpiredError, InvalidInputError, LakeError, NotFoundError
from lakelib.model.commit import Amended, Amendment, CommitOutcome, Conflict, Done, Reason
from lakelib.model.effect import NOTHING
from lakelib.model.files import DataFile, NewFile, Split
from lakelib.model.options import MIB
from lakelib.model.predicate import Predicate, columns_of
from lakelib.model.roles import Right
from lakelib.model.schema import TableSchema
from lakelib.model.table import NO_READ, CommitKind, Proposal, Snapshot, TableInfo, TableRef
from lakelib.model.upkeep import CompactionResult
from lakelib.ops.decide import GIVEN_UP, end_given_up, end_staged
from lakelib.ops.hold import Held
from lakelib.ops.merging import order_names, run_target
from lakelib.ops.patience import Overtaken, Patience, do_again
from lakelib.ops.runtime import Runtime
from lakelib.ops.tell import after_publish
from lakelib.ops.turn import Turn, while_busy
from lakelib.plan.compaction import CompactionPlan, CompactionRules, Goal, Unit, plan_compaction, plan_splits
from lakelib.plan.evolve import names_differ
from lakelib.plan.layout import estimate_row_bytes
from lakelib.plan.own_files import holds_nan
from lakelib.plan.where import bind_where
from lakelib.progress import Bar, bar
from lakelib.rows.filter import matching_partitions
from lakelib.storage.filesystem import Storage
from lakelib.storage.footers import FLOATS
from lakelib.storage.parquet import open_file
from lakelib.work.engines import rewrite_splits
from lakelib.work.parallel import collect_in_order
from lakelib.work.rewrite import RewriteWork

Tell = Callable[[int, int], None]
"""Hears how many bytes were read, of how many."""

_MOST_ROUNDS = 4
_LONGEST_WAIT_SECONDS = 1.0
"""After which what was lost to others is left to the next compaction: many write there."""
_COMMIT_BYTES = 4096 * MIB
"""What is read for one commit: a long compaction is of use, and its work safe, before it ends."""


def compact(
    runtime: Runtime,
    ref: TableRef,
    *,
    full: bool = False,
    to_layout: bool = False,
    where: str | Predicate | None = None,
    session: Any = None,
    tell: Tell | None = None,
) -> CompactionResult:
    """Rewrites what is due, or with `full` whatever leaves less to read, or what is not `to_layout`: in other buckets
    than its size asks for; in the partitions where `where` is TRUE.

    With a session Spark's tasks do the work. `tell` hears how many bytes are rewritten, and of how many. Raises
    InvalidInputError for a predicate over other columns than those of the partitions.
    """
    require_right(runtime.catalog, Right.MAINTAIN)
    runtime.ownership.confirm()
    start = time.monotonic()
    with bar(f"Compacting {ref.full_name}") as shown:
        call = _Call(session=session, progress=_Progress(tell, shown), tally=_Tally())
        skipped = _compact_in_rounds(runtime, ref, Goal.of(full=full, to_layout=to_layout), where, call)
    return call.tally.result(ref.full_name, skipped, time.monotonic() - start)


def _compact_in_rounds(
    runtime: Runtime, ref: TableRef, goal: Goal, where: str | Predicate | None, call: "_Call"
) -> int:
    """How many units were due and are left to others."""
    skipped = 0
    for _ in range(_MOST_ROUNDS):
        table = tables.load_table(runtime.catalog, ref)
        plan = _plan(runtime, table, goal, where)
        call.progress.expect(sum(unit.size_bytes for unit in plan.units))
        lost = _try_units(runtime, table, plan.units, call) if plan.units else 0
        skipped = lost + plan.blocked
        if call.waited_seconds > _LONGEST_WAIT_SECONDS if lost else plan.is_last_round:
            break
    return skipped


def _plan(runtime: Runtime, table: TableInfo, goal: Goal, where: str | Predicate | None) -> CompactionPlan:
    predicate = partition_predicate(table, where)
    query = files.FileQuery(
        table_id=table.id,
        snapshot_id=table.head_id,
        partition_by=table.partition_by,
        partition_predicate=predicate,
        with_bounds=goal is Goal.FULL,
    )
    found = files.load_files(runtime.catalog, query)
    chosen = set(found.partitions)
    if predicate is not None:
        chosen = matching_partitions(predicate, table.partition_by, found.partitions)
    rules = CompactionRules(
        merges=bool(table.primary_key_ids),
        keeps_deletes=bool(table.sequence_ids) if table.merge.is_newest else table.merge.keeps_marks,
        buckets=table.buckets,
        options=table.options,
        row_bytes=estimate_row_bytes(table.schema.columns),
        outdated=_outdated(runtime, table, found.files),
        misleading=_misleading(runtime, table, found.files) if goal is Goal.FULL else frozenset(),
    )
    live = (file for file in found.files if file.partition_id in chosen)
    claimed = commits.find_claims(runtime.catalog, table.id)
    return plan_compaction(live, found.partitions, rules, goal=goal, claimed=claimed)


def _outdated(runtime: Runtime, table: TableInfo, found: Sequence[DataFile]) -> frozenset[int]:
    """The versions of the schema that call columns otherwise than now: of a Delta log each column has one name in all
    files."""
    ids = {file.schema_id for file in found} - {table.schema.id}
    if not table.options.delta or not ids:
        return frozenset()
    schemas = tables.load_schemas(runtime.catalog, table.id, ids)
    return frozenset(each.id for each in schemas.values() if names_differ(table.schema.in_files, each.in_files))


def _misleading(runtime: Runtime, table: TableInfo, found: Sequence[DataFile]) -> frozenset[int]:
    """Files of earlier states whose statistics leave out NaN that they hold: engines that go by them miss its rows."""
    floats = [column for column in table.schema.columns if column.type in FLOATS]
    with_nan = [file for file in found if any(holds_nan(file, column) for column in floats)]

    def look(file: DataFile) -> Iterator[int]:
        with (
            suppress(LakeError),  # it was rewritten meanwhile, or whoever rewrites it now tells what is wrong
            open_file(runtime.storage, table.location, file.path, file.size_bytes) as reader,
        ):
            if reader.hides_nan:
                yield file.id

    return frozenset(collect_in_order(with_nan, look, runtime.read_threads))


def partition_predicate(table: TableInfo, where: str | Predicate | None) -> Predicate | None:
    """Raises InvalidInputError for a predicate over other columns than those of the partitions."""
    predicate = bind_where(where, table.schema)
    if predicate is not None and not columns_of(predicate) <= set(table.partition_ids):
        names = ", ".join(column.name for column in table.partition_by)
        raise InvalidInputError(
            f"The predicate asks for other columns of {table.full_name} than those that it is partitioned by.",
            kind="invalid_predicate",
            remedy=f"Its partition columns: {names or 'none'}.",
        )
    return predicate


# Rewriting


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommitUnits:
    """Units that are rewritten beside each other and published together."""

    table: TableInfo
    units: tuple[Unit, ...]
    splits: tuple[Split, ...]
    """All that is read for them."""
    unit_numbers: tuple[int, ...]
    """Of each split: the place of its unit."""

    @property
    def snapshot_id(self) -> int:
        return self.table.head_id


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rewritten:
    unit: Unit
    files: tuple[NewFile, ...]


class _Progress:
    """What is rewritten of what is known to be due."""

    def __init__(self, tell: Tell | None, shown: Bar) -> None:
        self._tell = tell
        self._shown = shown
        self._done_bytes = 0
        self._total_bytes = 0

    def expect(self, size_bytes: int) -> None:
        self._total_bytes += size_bytes
        self._shown.expect(size_bytes)

    def advance(self, size_bytes: int) -> None:
        self._done_bytes += size_bytes
        self._shown.advance(size_bytes)
        if self._tell is not None:
            self._tell(self._done_bytes, self._total_bytes)


@dataclass(slots=True, kw_only=True)
class _Call:
    """What one compaction works with, and what has come of it."""

    session: Any
    progress: _Progress
    tally: "_Tally"
    waited_seconds: float = 0.0


def _try_units(runtime: Runtime, table: TableInfo, units: Sequence[Unit], call: "_Call") -> int:
    """How many units were lost: all of them if the head that they were planned for had expired before it was held."""
    try:
        return _compact_units(runtime, table, units, call)
    except ExpiredError:
        return len(units)


def _compact_units(runtime: Runtime, table: TableInfo, units: Sequence[Unit], call: "_Call") -> int:
    """How many units were lost."""
    lost = 0
    schemas = tables.load_schemas(runtime.catalog, table.id, {file.schema_id for unit in units for file in unit.files})
    by_commit = list(_by_commit(table, units))
    with Held(runtime, by_commit[0]):
        for chosen in by_commit:
            began_at = retention.load_now(runtime.catalog)
            rewritten = _rewrite(runtime, chosen, schemas, call)
            lost += len(rewritten) - _commit(runtime, table, rewritten, began_at, call)
    return lost


def _by_commit(table: TableInfo, units: Sequence[Unit]) -> Iterator[_CommitUnits]:
    waiting: list[Unit] = []
    size_bytes = 0
    for unit in units:
        waiting.append(unit)
        size_bytes += unit.size_bytes
        if size_bytes >= _COMMIT_BYTES:
            yield _of_one_commit(table, waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield _of_one_commit(table, waiting)


def _of_one_commit(table: TableInfo, units: Sequence[Unit]) -> _CommitUnits:
    """Its splits are in the order in which they are worth doing: the largest first."""
    numbered = [(number, split) for number, unit in enumerate(units) for split in plan_splits(unit)]
    numbered.sort(key=lambda pair: -pair[1].size_bytes)
    return _CommitUnits(
        table=table,
        units=tuple(units),
        splits=tuple(split for _, split in numbered),
        unit_numbers=tuple(number for number, _ in numbered),
    )


def _rewrite(
    runtime: Runtime, chosen: _CommitUnits, schemas: dict[int, TableSchema], call: "_Call"
) -> list[_Rewritten]:
    works = [
        _work(runtime, chosen, schemas, chosen.units[number], split)
        for number, split in zip(chosen.unit_numbers, chosen.splits, strict=True)
    ]
    done = call.progress.advance
    written = rewrite_splits(works, session=call.session, threads=runtime.threads, done=done)
    by_unit: list[list[NewFile]] = [[] for _ in chosen.units]
    for number, new in zip(chosen.unit_numbers, written, strict=True):
        by_unit[number].extend(new)
    return [_Rewritten(unit=unit, files=tuple(new)) for unit, new in zip(chosen.units, by_unit, strict=True)]


def _work(
    runtime: Runtime, chosen: _CommitUnits, schemas: dict[int, TableSchema], unit: Unit, split: Split
) -> RewriteWork:
    table = chosen.table
    target = run_target(
        table,
        table.schema,
        file_kind=CommitKind.COMPACT.value,
        order_names=order_names(table, table.schema),
        holds_deletes=not unit.drops_deletes and any(file.delete_count for file in split.files),
        holds_commits=True,
    )
    return RewriteWork(
        storage=runtime.storage,
        target=target,
        schemas={file.schema_id: schemas[file.schema_id].in_files for file in split.files},
        split=split,
        output_depth=unit.output_depth,
        drops_deletes=unit.drops_deletes,
        sequence=unit.sequence,
        run=unit.run,
        level=unit.level,
    )


# Committing


def _commit(
    runtime: Runtime, table: TableInfo, rewritten: Sequence[_Rewritten], began_at: datetime, call: "_Call"
) -> int:
    """Puts the new files in place of the old ones, in one commit. How many units that was possible for: the others
    leave nothing behind. Files stay while it is unknown what became of the commit."""
    proposal = _proposal(table, uuid4(), rewritten, began_at)
    patience = Patience(f"Compacting {table.full_name}")
    try:
        with Turn(runtime, patience, table.id) as turn:
            course = _Course(runtime, table, proposal, rewritten, call.tally, turn)
            done = do_again(course.attempt)
    except GIVEN_UP as error:
        end_given_up(runtime, proposal.commit_id, error)
        raise
    finally:
        call.waited_seconds += patience.waited_seconds
    if course.snapshot is not None:
        after_publish(runtime, table.id, course.snapshot, table)
    return done


class _Course:
    """The way of one commit: with each attempt it has fewer units, if others have taken some of their files."""

    def __init__(
        self,
        runtime: Runtime,
        table: TableInfo,
        proposal: Proposal,
        rewritten: Sequence[_Rewritten],
        tally: "_Tally",
        turn: Turn,
    ) -> None:
        self._runtime = runtime
        self._table = table
        self._proposal = proposal
        self._left = list(rewritten)
        self._tally = tally
        self._turn = turn
        self._step = self._begin
        self.snapshot: Snapshot | None = None
        """What the commit has become."""

    def attempt(self) -> int | Overtaken:
        """How many units are published."""
        match self._turn.attempt(self._step):
            case Done(commits=(became,)):
                self.snapshot = became.snapshot
                self._tally.add(self._left, became.snapshot)
                return len(self._left)
            case Conflict() as conflict:
                return self._without_spoilt(conflict)
            case _:  # the commit has ended, or its table, or nothing was staged
                if _is_given_up(self._runtime, self._proposal.commit_id):
                    self._discard(self._left)
                tables.load_table(self._runtime.catalog, self._table.ref)
                return 0

    def _begin(self, epoch: int) -> CommitOutcome:
        return commits.commit(self._runtime.catalog, self._proposal, epoch=epoch, turn=self._turn.id)

    def _publish(self, epoch: int) -> CommitOutcome:
        return commits.publish(self._runtime.catalog, [self._proposal.commit_id], epoch=epoch, turn=self._turn.id)

    def _without_spoilt(self, conflict: Conflict) -> int | Overtaken:
        self._left, spoilt = _without_spoilt(self._runtime, self._proposal, self._left, conflict)
        self._discard(spoilt)
        self._turn.patience.pause()
        self._step = self._publish
        return Overtaken() if self._left else 0

    def _discard(self, rewritten: Sequence[_Rewritten]) -> None:
        _delete(self._runtime.storage.at(self._table.location), [file for each in rewritten for file in each.files])


def _is_given_up(runtime: Runtime, commit_id: UUID) -> bool:
    """Whether it is certain that the commit is no snapshot and never will be. A staged commit is for everybody to see:
    others may have published it, or rejected it, which leaves it to be published by name and reason."""
    try:
        return end_staged(runtime, commit_id, "the compaction was overtaken")
    except NotFoundError:
        return True
    except LakeError:
        return False


def _without_spoilt(
    runtime: Runtime, proposal: Proposal, left: list[_Rewritten], conflict: Conflict
) -> tuple[list[_Rewritten], list[_Rewritten]]:
    """The units that can be published still, staged as the same commit, and those that cannot."""
    gone = commits.find_spoilt(runtime.catalog, proposal.commit_id)
    spoilt = [each for each in left if any(file.id in gone for file in each.unit.files)]
    kept = [each for each in left if each not in spoilt]
    if kept and not spoilt and Reason.INPUT_CLAIMED in conflict.reasons:
        return kept, []  # who was in the way has given up: it is tried again
    if kept and spoilt and _withdraw(runtime, proposal, conflict, spoilt):
        return kept, spoilt
    given_up = end_staged(runtime, proposal.commit_id, conflict.reasons[0].value)
    return [], left if given_up else []


def _withdraw(runtime: Runtime, proposal: Proposal, conflict: Conflict, spoilt: Sequence[_Rewritten]) -> bool:
    amendment = Amendment(
        commit_id=proposal.commit_id,
        number=conflict.about.amendment + 1,
        began_at=proposal.began_at,
        withdrawn_paths=tuple(file.path for each in spoilt for file in each.files),
        withdrawn_file_ids=tuple(file.id for each in spoilt for file in each.unit.files),
        read_scope=NO_READ,
    )
    patience = Patience(f"Amending commit {proposal.commit_id}")
    return isinstance(while_busy(patience, lambda: commits.amend(runtime.catalog, amendment)), Amended)


def _proposal(table: TableInfo, commit_id: UUID, rewritten: Sequence[_Rewritten], began_at: datetime) -> Proposal:
    return Proposal(
        commit_id=commit_id,
        table_id=table.id,
        kind=CommitKind.COMPACT,
        base_snapshot_id=table.head_id,
        began_at=began_at,
        schema=table.schema,
        files=tuple(file for each in rewritten for file in each.files),
        removed_file_ids=tuple(file.id for each in rewritten for file in each.unit.files),
        read_scope=NO_READ,
        partition_column_ids=table.partition_ids,
        summary={**_summary(rewritten), **NOTHING.as_summary()},
    )


def _summary(rewritten: Sequence[_Rewritten]) -> dict[str, int]:
    new = [file for each in rewritten for file in each.files]
    old = [file for each in rewritten for file in each.unit.files]
    return {
        "rows_in": sum(file.row_count for file in old),
        "rows_written": sum(file.row_count - file.delete_count for file in new),
        "deletes_written": sum(file.delete_count for file in new),
        "files_added": len(new),
        "files_removed": len(old),
        "bytes_added": sum(file.size_bytes for file in new),
        "bytes_removed": sum(file.size_bytes for file in old),
        "partitions": len({each.unit.partition.id for each in rewritten}),
    }


def _delete(root: Storage, files: Sequence[NewFile]) -> None:
    """What cannot be deleted now is an orphan: no snapshot and no staged commit names it."""
    with suppress(LakeError):
        root.delete_files([file.path for file in files])


class _Tally:
    """What was done so far."""

    def __init__(self) -> None:
        self._done = CompactionResult(table="")
        self._partitions: set[int] = set()

    def add(self, rewritten: Sequence[_Rewritten], snapshot: Snapshot) -> None:
        done, summary = self._done, _summary(rewritten)
        self._partitions |= {each.unit.partition.id for each in rewritten}
        self._done = replace(
            done,
            snapshots=(*done.snapshots, snapshot),
            units=done.units + len(rewritten),
            files_before=done.files_before + summary["files_removed"],
            files_after=done.files_after + summary["files_added"],
            runs_before=done.runs_before + sum(each.unit.run_count for each in rewritten),
            runs_after=done.runs_after + sum(bool(each.files) for each in rewritten),
            rows_before=done.rows_before + summary["rows_in"],
            rows_after=done.rows_after + summary["rows_written"] + summary["deletes_written"],
            bytes_before=done.bytes_before + summary["bytes_removed"],
            bytes_after=done.bytes_after + summary["bytes_added"],
        )

    def result(self, table: str, skipped: int, seconds: float) -> CompactionResult:
        return replace(
            self._done, table=table, units_skipped=skipped, partitions=len(self._partitions), seconds=seconds
        )
