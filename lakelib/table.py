"""The public API: Table. Each method is one call into `lakelib.ops`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, Unpack
from uuid import UUID

import pyarrow as pa

from lakelib.catalog import tables
from lakelib.changes import Changes
from lakelib.consumer import Consumer
from lakelib.interop.hive.metastore import parse_address
from lakelib.merge_into import MergeInto
from lakelib.model.commit import CommitSummary
from lakelib.model.exports import DeltaExport, DuckLakeShow, HiveResult
from lakelib.model.files import PartitionSummary
from lakelib.model.flags import checked_flag
from lakelib.model.gate import GateRequirement
from lakelib.model.html import Listing
from lakelib.model.positions import ConsumerStatus
from lakelib.model.predicate import Predicate
from lakelib.model.rollback import RollbackPlan
from lakelib.model.status import TableDetail
from lakelib.model.table import CommitKind, Snapshot, TableInfo, TableRef
from lakelib.model.upkeep import DEFAULT_EXPIRE_GRACE, DEFAULT_STAGED_OLDER_THAN, CompactionResult, ExpireResult, Tag
from lakelib.ops import (
    changes,
    compact,
    consumers,
    cross_partition,
    delete,
    delta,
    ducklake,
    evolve,
    expire,
    gates,
    hive,
    inspect,
    mark_done,
    overwrite,
    read,
    rebucket,
    snapshots,
)
from lakelib.ops.mark_done import DEFAULT_ACTIONS, Action, DonePartition
from lakelib.ops.request import WriteOptions, WriteRequest, parse_request, parse_write
from lakelib.ops.runtime import Runtime
from lakelib.ops.write import stage_write, write
from lakelib.plan.evolve import SchemaChange
from lakelib.rows.types import plain_schema
from lakelib.scan import Scan
from lakelib.specs.suite import Suite
from lakelib.staged import StagedCommit


class Table:
    """A table of a lake. A handle: it holds no rows, and its properties tell the table's state at this moment.

    Writes take `data` as a pyarrow Table, RecordBatch or RecordBatchReader, or any object with an Arrow interface, and
    these keywords: `idempotency_key=("app", 17)` (a version that the application published already is not written
    again), `properties={…}` (kept with the snapshot), `merge_schema` (new columns and wider types extend the table),
    `explicit_cast` (values are converted to the table's types if each converts exactly), `aux_order=[…]` (columns of
    the data that decide which duplicate is newest, and are not stored), `gate` (a suite or the path of one: what
    it does not pass is not published, and is a RejectedError; a staged commit is judged by it at once). A table that
    requires a registered suite has what is written at once judged by it, without `gate`.
    """

    def __init__(self, runtime: Runtime, info: TableInfo) -> None:
        self._runtime = runtime
        self._ref = info.ref
        self._location = info.location

    @property
    def name(self) -> str:
        """Namespace and name."""
        return self._ref.full_name

    @property
    def location(self) -> str:
        return self._runtime.storage.place_of(self._location)

    @property
    def schema(self) -> pa.Schema:
        return plain_schema(self._now().schema.columns)

    @property
    def primary_key(self) -> list[str]:
        return [column.name for column in self._now().primary_key]

    @property
    def partition_by(self) -> list[str]:
        return [column.name for column in self._now().partition_by]

    @property
    def options(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return self._now().options.as_mapping()

    @property
    def head(self) -> Snapshot | None:
        """The newest snapshot; None before the first."""
        return read.resolve_snapshot(self._runtime, self._now(), None)

    # Writes

    def append(self, data: Any, **options: Unpack[WriteOptions]) -> Snapshot:
        """Adds rows. On a table with a primary key a row replaces the one of its key, as in `upsert`."""
        source, request = parse_write(data, **options)
        return write(self._runtime, self._ref, CommitKind.APPEND, source, request)

    def upsert(self, data: Any, **options: Unpack[WriteOptions]) -> Snapshot:
        """Adds rows, each in place of the one of its key."""
        source, request = parse_write(data, **options)
        return write(self._runtime, self._ref, CommitKind.UPSERT, source, request)

    def overwrite(
        self,
        data: Any,
        partitions: str | Mapping[str, Any] = "all",
        *,
        where: str | Predicate | None = None,
        overwrite_schema: bool = False,
        **options: Unpack[WriteOptions],
    ) -> Snapshot:
        """Puts rows in place of all that is in the table ("all"), in the partitions of the rows ("dynamic": all of a
        table that is not partitioned), or in the partitions of the given values. With a SQL predicate, `where`, they
        take the place of the rows for which it is TRUE, and it has to be TRUE for each of them. With
        `overwrite_schema` the table has the columns of the rows from then on, all of which are replaced; those of key,
        partition and sequence stay."""
        source, request = overwrite.parse_overwrite(data, overwrite_schema, **options)
        return overwrite.overwrite(self._runtime, self._ref, source, partitions, request, where)

    def delete(self, where: str | Predicate, **options: Unpack[WriteOptions]) -> Snapshot:
        """Deletes the rows for which the SQL predicate is TRUE."""
        return delete.delete_where(self._runtime, self._ref, where, parse_request(**options))

    def update(
        self,
        set: Mapping[str, str],
        where: str | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        session: Any = None,
        **options: Unpack[WriteOptions],
    ) -> Snapshot | None:
        """Changes the rows for which the condition is TRUE, all of them without one: `{"amount": "amount * 2"}`. What
        columns are to be, and the condition, are SQL in Spark's dialect, inner queries included; `$name` in them is one
        of `parameters`. What it was computed from is looked at again if others have changed it meanwhile. Columns of
        the key, and of the partition unless a key is in one partition of the table, are not updated. With a Spark
        session its tasks do the work. None where no row changes, unless an idempotency key is to be kept."""
        from lakelib.ops import merge_into  # SQL takes long to load

        request = parse_request("set", "where", **options)
        return merge_into.update(self._runtime, self._ref, set, where, parameters, session, request)

    def merge(
        self,
        source: Any,
        on: str | Sequence[str] | None = None,
        *,
        target_alias: str = "target",
        source_alias: str = "source",
        parameters: Mapping[str, Any] | None = None,
        session: Any = None,
    ) -> MergeInto:
        """Begins a merge of other rows into the table: whatever `upsert` takes, or another table of the lake. Rows
        belong together where `on` is TRUE, a condition in SQL or names of columns that both have; without one, where
        the key is the same, and the partition, if a key is in each. `when_matched_update()` and its kin say what
        becomes of them, and `execute()` does it, in one commit. With a Spark session its tasks do the work; with
        rows of a Spark data frame, those of its session."""
        from lakelib.ops import merge_into  # SQL takes long to load

        rows = source._ref if isinstance(source, Table) else source
        merging = merge_into.open_merge(
            self._runtime, self._ref, rows, on, target_alias, source_alias, parameters, session
        )
        return MergeInto(merging, self._staged)

    def delete_keys(self, data: Any, **options: Unpack[WriteOptions]) -> Snapshot:
        """Deletes the rows of the given keys. The data needs the primary key and the partition columns."""
        return delete.delete_keys(self._runtime, self._ref, *parse_write(data, **options))

    def rollback(self, to: int | str | datetime, **options: Unpack[WriteOptions]) -> Snapshot:
        """Gives the table the content of an older snapshot again, as a new one: of a snapshot id, a "tag:…" or a
        moment. Nothing is destroyed, and no row is read or written: its files are named again, and those that came
        since are taken out. The schema stays: columns that have come since are NULL. Whatever others commit meanwhile
        is undone as well. Raises NotFoundError if the snapshot has expired."""
        return snapshots.rollback(self._runtime, self._ref, to, parse_request("to", **options))

    def preview_rollback(self, to: int | str | datetime) -> RollbackPlan:
        """What a rollback would change now: files, rows and partitions. Changes nothing."""
        return snapshots.preview_rollback(self._runtime, self._ref, to)

    # Staged writes

    def stage_append(self, data: Any, **options: Unpack[WriteOptions]) -> StagedCommit:
        source, request = parse_write(data, **options)
        return self._staged(stage_write(self._runtime, self._ref, CommitKind.APPEND, source, request), request)

    def stage_upsert(self, data: Any, **options: Unpack[WriteOptions]) -> StagedCommit:
        source, request = parse_write(data, **options)
        return self._staged(stage_write(self._runtime, self._ref, CommitKind.UPSERT, source, request), request)

    def stage_overwrite(
        self,
        data: Any,
        partitions: str | Mapping[str, Any] = "all",
        *,
        where: str | Predicate | None = None,
        overwrite_schema: bool = False,
        **options: Unpack[WriteOptions],
    ) -> StagedCommit:
        source, request = overwrite.parse_overwrite(data, overwrite_schema, **options)
        commit_id = overwrite.stage_overwrite(self._runtime, self._ref, source, partitions, request, where)
        return self._staged(commit_id, request)

    def stage_update(
        self,
        set: Mapping[str, str],
        where: str | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        session: Any = None,
        **options: Unpack[WriteOptions],
    ) -> StagedCommit:
        from lakelib.ops import merge_into, revise  # SQL takes long to load

        request = parse_request("set", "where", **options)
        revision = merge_into.parse_update(self._ref, set, where, parameters)
        runtime = merge_into.on_session(self._runtime, session)
        return self._staged(revise.stage_revision(runtime, self._ref, revision, None, request), request)

    def stage_delete(self, where: str | Predicate, **options: Unpack[WriteOptions]) -> StagedCommit:
        request = parse_request(**options)
        return self._staged(delete.stage_delete_where(self._runtime, self._ref, where, request), request)

    def stage_delete_keys(self, data: Any, **options: Unpack[WriteOptions]) -> StagedCommit:
        source, request = parse_write(data, **options)
        return self._staged(delete.stage_delete_keys(self._runtime, self._ref, source, request), request)

    def stage_rollback(self, to: int | str | datetime, **options: Unpack[WriteOptions]) -> StagedCommit:
        request = parse_request("to", **options)
        return self._staged(snapshots.stage_rollback(self._runtime, self._ref, to, request), request)

    def _staged(self, commit_id: UUID, request: WriteRequest) -> StagedCommit:
        """With a verdict, if a gate was asked for."""
        staged = StagedCommit(self._runtime, self._ref, commit_id)
        if request.judging is not None:
            staged.judge(request.judging.suite, request.judging.session)
        return staged

    # Reads

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        at: int | str | datetime | None = None,
        *,
        view: str = "merged",
    ) -> Scan:
        """Rows at the head, or at a snapshot id, a "tag:…" or a moment. `where` is a SQL predicate.

        The view "merged" has each key once. "read_optimized" has it as the last compaction left it, and merges next to
        nothing: `Scan.lag` tells what is missing. "unmerged" has all that the files hold, of a key the oldest first:
        each row with its commit (`_commit`) and what it is (`_op`: "upsert" or "delete").
        """
        request = read.ScanRequest(columns=read.names_of(columns), where=where, at=at, view=view)
        return Scan(self._runtime, read.plan_scan(self._runtime, self._now(), request))

    def changes(
        self,
        *,
        after: int | str | datetime | None = None,
        until: int | str | datetime | None = None,
        view: str = "latest",
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
    ) -> Changes:
        """What has changed after one snapshot (0: before the first) and until another: each a number, a "tag:…" or a
        moment. Without `until` to the head; without `after` what `until` alone has changed, the newest commit if
        neither is given.

        "latest" gives one row a key that was written, as it is at `until`, or a delete; "all" every row and every
        delete of each commit; "net" what differs, with the rows as they were before. `where` is a SQL predicate over
        the changes; of a delete only key and partition columns are known. Raises ExpiredError where expired snapshots
        took with them what is asked for.
        """
        request = changes.ChangesRequest(
            after=after, until=until, view=view, columns=read.names_of(columns), where=where
        )
        return Changes(self._runtime, changes.plan_changes(self._runtime, self._now(), request))

    def diff(
        self,
        before: int | str | datetime,
        after: int | str | datetime,
        *,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
    ) -> Changes:
        """What differs between two snapshots, in whichever order: the view "net" of the changes from one to the
        other."""
        request = changes.ChangesRequest(
            after=before, until=after, view="net", columns=read.names_of(columns), where=where, both_ways=True
        )
        return Changes(self._runtime, changes.plan_changes(self._runtime, self._now(), request))

    def history(self, exact: bool = False) -> Listing[Snapshot]:
        """All snapshots, newest first. `summary` says of each how many rows it inserted, updated and deleted, where
        that is known for nothing; with `exact` the changes of the others are read. None is what cannot be told."""
        return inspect.list_history(self._runtime, self._now(), exact=checked_flag("exact", exact))

    def commits(
        self, states: str | Sequence[str] = inspect.WAITING, limit: int = inspect.DEFAULT_COMMITS
    ) -> Listing[CommitSummary]:
        """The commits that wait for a decision, or those that are "staged", "rejected", "published" or "expired", the
        newest first: whose they are, what their gates have said, what came of them. `lake.staged(id)` takes one up."""
        return inspect.list_commits(self._runtime, self._now(), inspect.parse_states(states), limit)

    def status(self, specs: str | PathLike[str] | None = None) -> TableDetail:
        """How the table is doing, partition by partition: what is missing, late or stale, or waits for a person, and
        why. `specs` is a folder of tables' specs, which say what is due; without one nothing is."""
        from lakelib.ops import status  # specs take long to load

        return status.look_at_table(self._runtime, self._now().full_name, status.read_right_specs(specs))

    def files(self, at: int | str | datetime | None = None) -> inspect.FileListing:
        """The live files: iterate to stream them, `len()` counts them."""
        return inspect.list_files(self._runtime, self._now(), at)

    def partitions(self, at: int | str | datetime | None = None) -> Listing[PartitionSummary]:
        """The partitions that hold files."""
        return inspect.list_partitions(self._runtime, self._now(), at)

    def touched_partitions(self, at: int | str | datetime | None = None) -> list[inspect.TouchedPartition]:
        """The partitions that a snapshot brought rows to or took rows from. A compaction touches none. Of one that an
        overwrite put in place of itself it says whether its rows are the same: they are read, if they are not too
        many."""
        return inspect.list_touched(self._runtime, self._now(), at)

    def consumer(
        self, name: str, *, keep_for: timedelta | None = None, after: int | str | datetime | None = None
    ) -> Consumer:
        """A named position in the table's history, made if it is not there: it then begins before the first snapshot,
        unless told `after` which (an id, a "tag:…", a moment, the "consumer:…" of another). Safe to repeat: one that is
        there stays where it is.

        The history that it has not read is kept from expiry for as long as `keep_for` says, 7 days unless told, counted
        from each commit: a consumer that nobody reads any more holds nothing for ever. What is told counts from now on.
        """
        return Consumer(self._runtime, self, consumers.open_consumer(self._runtime, self._now(), name, keep_for, after))

    def consumers(self) -> Listing[ConsumerStatus]:
        """All consumers by name, and how far behind each is."""
        return consumers.list_consumers(self._runtime, self._now())

    # Life cycle

    def compact(
        self,
        full: bool = False,
        where: str | Predicate | None = None,
        session: Any = None,
        *,
        tell: Callable[[int, int], None] | None = None,
    ) -> CompactionResult:
        """Makes fewer and larger files of what is due, or with `full` one run of each bucket. No answer changes, and no
        writer is disturbed. `where` chooses partitions; with a Spark session its tasks do the work. `tell` hears how
        many bytes are rewritten, and of how many."""
        return compact.compact(
            self._runtime, self._ref, full=checked_flag("full", full), where=where, session=session, tell=tell
        )

    def rebucket(
        self,
        buckets: int | str,
        *,
        rewrite: bool = True,
        where: str | Predicate | None = None,
        session: Any = None,
        tell: Callable[[int, int], None] | None = None,
    ) -> CompactionResult:
        """Spreads the keys over another number of buckets, beside readers and writers: a power of two, "dynamic" or
        "postpone", for whoever writes from now on. With a number, files that lie otherwise are rewritten, in the
        partitions that `where` chooses, as `compact` does that; without `rewrite` later compactions bring them there.
        Safe to repeat: one that was interrupted goes on."""
        return rebucket.rebucket(
            self._runtime,
            self._ref,
            buckets,
            rewrite=checked_flag("rewrite", rewrite),
            where=where,
            session=session,
            tell=tell,
        )

    def evolve(
        self,
        add: Sequence[Any] | str = (),
        drop: Sequence[str] = (),
        rename: Mapping[str, str] | None = None,
        widen: Mapping[str, str] | None = None,
        *,
        nullable: Sequence[str] = (),
        move: Mapping[str, str] | None = None,
        comment: Mapping[str, str] | None = None,
        functions: Mapping[str, str] | None = None,
        **options: Unpack[WriteOptions],
    ) -> Snapshot:
        """Changes the schema: `add=[("x", "string")]`, `drop=["y"]`, `rename={"a": "b"}`, `widen={"n": "bigint"}`;
        `nullable=["c"]` takes NOT NULL back, `move={"x": "first", "c": "after id"}` changes the order of columns,
        `comment={"c": "gross, in EUR"}` says what a column holds ('' takes that away). All name columns as they are
        before, and no file is touched. Of a table that aggregates `functions={"x": "max"}` says what becomes of columns
        that are added."""
        change = SchemaChange(
            add=add,
            drop=drop,
            rename=rename,
            widen=widen,
            nullable=nullable,
            move=move,
            comment=comment,
            functions=functions,
        )
        known = [field.name for field in fields(SchemaChange)]
        return evolve.evolve(self._runtime, self._ref, change, parse_request(*known, **options))

    def mark_done(self, partition: Mapping[str, Any], actions: Sequence[Action] = DEFAULT_ACTIONS) -> DonePartition:
        """Promises downstream that a partition is complete: `mark_done({"dt": "2026-11-18"})`; safe to repeat.

        The catalog notes it, as of the head. Actions: "done_partition" is that note, "success_file" writes a file
        `_SUCCESS` into the partition's folder, `{"http_report": {"url": …, "params": {…}}}` tells a service. Publishing
        rows of the partition takes note and file back. Raises RetryableError if a service was not told.
        """
        return mark_done.mark_done(self._runtime, self._now(), partition, actions)

    def report_hive(
        self,
        metastore: str,
        *,
        database: str | None = None,
        partitions: Sequence[Mapping[str, Any]] | None = None,
        idle: timedelta | None = None,
        dry_run: bool = False,
    ) -> HiveResult:
        """A Hive metastore (`thrift://host:9083`) knows the table afterwards: an external table of Parquet, in the
        `database` of its namespace's name, unless told, with its partitions, what they hold and which are done, as
        parameters. Only what it does not know is told, so a report may be repeated at will.

        `partitions` are the values of those that are told; else all are, and those that are gone are taken out.
        With `idle` those are left out to which rows have come a shorter while ago. A partition that cannot be told is
        among the result's `failed`, and the next report tries it again. Raises RetryableError if the service is out of
        reach, InvalidInputError for a table of that name there that is another one.
        """
        request = hive.HiveRequest(
            address=parse_address(metastore),
            database=database,
            partitions=None if partitions is None else tuple(partitions),
            idle=idle,
            dry_run=checked_flag("dry_run", dry_run),
        )
        return hive.report(self._runtime, self._now(), request)

    def mark_done_again(self, snapshot_id: int, actions: Sequence[Action] = DEFAULT_ACTIONS) -> list[DonePartition]:
        """Promises anew what publishing this snapshot has taken back: the partitions that were done until it brought
        them other rows. For whoever published it, and holds what was promised for kept; safe to repeat."""
        return mark_done.mark_again(self._runtime, self._now(), snapshot_id, actions)

    def done_partitions(self, with_reset: bool = False) -> list[DonePartition]:
        """The partitions that are marked done; with those whose mark was reset since, if asked for."""
        return mark_done.list_done(self._runtime, self._now(), with_reset=checked_flag("with_reset", with_reset))

    def is_done(self, partition: Mapping[str, Any]) -> bool:
        """Whether the partition is marked done, and no rows of it were published since."""
        return mark_done.is_done(self._runtime, self._now(), partition)

    def export_delta(self) -> DeltaExport:
        """Brings the table's Delta log up to date, which other engines read; safe to repeat, and to do by many at once.
        With the option `delta` ("head" or "compacted") whoever publishes does it; without it a log is made of the head.
        Snapshot n is version n - 1. Raises ConflictError for a log that somebody else has written to."""
        return delta.export_delta(self._runtime, self._ref)

    def show_in_ducklake(self) -> DuckLakeShow:
        """Has the table's snapshots shown to DuckDB, which attaches the lake as a DuckLake (`lake.ducklake()`); safe to
        repeat. Whoever publishes to a table with the option `ducklake` does it; a table without a key needs nothing.
        Raises InvalidInputError for a table with a key that lacks the option."""
        return ducklake.show(self._runtime, self._ref)

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Changes table options: `set_options({"target_file_bytes": 64 * 2**20})`. Those that are not named stay. A
        gate that is required stays so: `release_gate` takes it away."""
        evolve.set_options(self._runtime, self._ref, options)

    def settle_keys(self) -> Snapshot | None:
        """Takes away, of each key that stands in several partitions, all rows but the newest, in one commit; None where
        there are none. What `set_options({"cross_partition": True})` asks for where it finds some."""
        return cross_partition.settle_keys(self._runtime, self._ref)

    @property
    def required_gate(self) -> GateRequirement | None:
        """The suite that must have passed a commit before it is published; None for none. One without a hash is
        required by its name alone, as tables did before suites were registered."""
        return gates.find_requirement(self._runtime, self._ref)

    def gate_history(self) -> list[GateRequirement]:
        """The suite that is required and those that were, the newest first: who required them, who released them,
        why."""
        return gates.list_requirements(self._runtime, self._now())

    def require_gate(
        self, gate: str | PathLike[str] | Suite, *, by: str | None = None, reason: str | None = None
    ) -> GateRequirement:
        """No commit is published from now on that this suite has not passed: the newest version that is registered
        under a name, or a suite or the `Path` of one, which is registered if it was not. `by` says who requires it; the
        database's user, unless told.

        Another version of the gate takes the place of the one that is required; another gate only by name and reason.
        """
        return gates.require(self._runtime, self._ref, gate, by, reason)

    def release_gate(self, *, by: str, reason: str) -> None:
        """Commits need no gate from now on. Who has said so and why stays in the catalog."""
        gates.release(self._runtime, self._ref, by, reason)

    def tag(
        self,
        name: str,
        at: int | str | datetime | None = None,
        *,
        keep: timedelta | None = None,
        keep_last: int | None = None,
        family: str = "",
    ) -> Tag:
        """Pins a snapshot, the head unless told, under a name: `at="tag:NAME"` reads it, and it does not expire.

        The tag stays until somebody deletes it. With `keep` or `keep_last` it has an end: `expire` takes it away once
        it is older than `keep`, and not among the newest `keep_last` of the table's tags of that `family`. Safe to
        repeat: the later end counts, and a tag without an end stays so. A tag does not move: raises ConflictError if
        the name is on another snapshot.
        """
        end = snapshots.parse_end(keep, keep_last, family)
        return snapshots.set_tag(self._runtime, self._now(), name, at, end)

    def tags(self) -> Listing[Tag]:
        """All tags, those of the newest snapshots first."""
        return Listing(snapshots.list_tags(self._runtime, self._now()))

    def delete_tag(self, name: str) -> None:
        """Lets go of a tag's snapshot. Raises NotFoundError if there is no such tag."""
        snapshots.delete_tag(self._runtime, self._now(), name)

    def expire(
        self,
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        dry_run: bool = False,
        *,
        staged_older_than: timedelta | None = DEFAULT_STAGED_OLDER_THAN,
        grace: timedelta = DEFAULT_EXPIRE_GRACE,
    ) -> ExpireResult:
        """Forgets snapshots that are not among the last `keep_last` and were superseded longer ago than `older_than`.

        What is not given holds nothing back; with neither given, the last 10 stay, and those of the last 7 days. Tags
        whose time is over go first. The head, other tags, snapshots that are being read, and what staged and rejected
        commits were made from always stay; commits that have waited for longer than `staged_older_than` are given up
        first (None: never). A vacuum deletes the files that nothing needs any more once the `grace` is over. A dry run
        tells what would go.
        """
        rules = expire.parse_rules(keep_last, older_than, staged_older_than)
        work = expire.preview if checked_flag("dry_run", dry_run) else expire.expire
        return work(self._runtime, self._now(), rules, grace)

    @property
    def ref(self) -> TableRef:
        """Which table is meant: for lakelib's own parts."""
        return self._ref

    @property
    def info(self) -> TableInfo:
        """The table as it is now: for lakelib's own parts."""
        return self._now()

    def _now(self) -> TableInfo:
        return tables.load_table(self._runtime.catalog, self._ref)

    def _repr_html_(self) -> str:
        table = self._now()
        return inspect.table_as_html(table, f"{table.full_name}, snapshot {table.head_id}, at {self.location}")

    def __repr__(self) -> str:
        return f"<Table {self.name} at {self.location}>"
