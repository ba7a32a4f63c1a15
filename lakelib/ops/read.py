"""Use case: a table is read.

Step by step: which snapshot is meant; what is asked for, in terms of the schema of that snapshot; the files that may
hold it, pruned in SQL; splits; then, under a lease, the rows.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any, SupportsIndex
from uuid import UUID

import pyarrow as pa

from lakelib.catalog import commits, files, snapshots, tables
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.changes import ChangeSplit, ChangeView, ScanView, Way, view_of
from lakelib.model.commit import CommitInfo
from lakelib.model.files import DataFile, Split
from lakelib.model.positions import NO_LAG, Lag
from lakelib.model.predicate import Predicate, columns_of
from lakelib.model.schema import COMMIT_COLUMN, Column, TableSchema
from lakelib.model.table import MAX_DEPTH, CommitState, Snapshot, TableInfo
from lakelib.model.text import choose_from, is_storable
from lakelib.ops.hold import Held
from lakelib.ops.merging import merge_engine
from lakelib.ops.runtime import Runtime
from lakelib.plan.literals import all_of
from lakelib.plan.meant import TAG_PREFIX, parse_at, wrong_at
from lakelib.plan.prune import file_may_match, key_tuples
from lakelib.plan.scan import arrange_splits, base_splits, gather_splits, needs_merge
from lakelib.plan.where import COMMIT, asked_columns, bind_where
from lakelib.progress import SILENT, Bar, bar
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.key_set import KeySet
from lakelib.rows.raw_arrays import arrow_values
from lakelib.work import engines
from lakelib.work.changes import ChangeTarget, change_target, read_changes
from lakelib.work.parallel import collect_in_order, stream_as_ready
from lakelib.work.read import ReadTarget, read_splits

At = None | SupportsIndex | str | datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedView:
    """A look at a staged commit: its own rows ("staged"), or the table as publishing it would leave it ("merged")."""

    commit_id: UUID
    scope: str
    beneath: tuple[UUID, ...] = ()
    """Other staged commits that are taken for published, in this order."""
    commit: CommitInfo | None = None
    """The commit, where it was loaded for this look; None: as it is by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    columns: tuple[str, ...] | None = None
    where: str | Predicate | None = None
    at: At = None
    staged: StagedView | None = None
    partition_ids: tuple[int, ...] | None = None
    """Only these partitions, if any are named."""
    after_sequence: int | None = None
    """Only files with rows of later commits, merged with each other alone."""
    with_commits: bool = False
    """All columns, and the commit of each row."""
    hash_prefixes: tuple[int, ...] | None = None
    """Only the files that may hold keys whose hashes begin with these MAX_DEPTH bits, ascending."""
    among: KeySet | None = None
    """Only rows whose keys may be in the set."""
    schema_id: int | None = None
    """In the columns of this version of the schema; None: in those of the snapshot's own time."""
    view: str = ScanView.MERGED.value
    with_bounds: bool = False
    """Whether the files come with what is known of their columns."""


EVERYTHING = ScanRequest()


def names_of(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    return columns if columns is None or isinstance(columns, str) else tuple(columns)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """What will be read. Pinned: running it twice gives the same rows."""

    table: TableInfo
    request: ScanRequest
    """What was asked for."""
    snapshot_id: int
    """0 for a table without a snapshot."""
    schema: TableSchema
    predicate: Predicate | None
    query: files.FileQuery
    target: ReadTarget
    splits: tuple[Split, ...]
    partition_ids: tuple[int, ...]
    """The partitions that may hold matching rows."""
    view: ScanView = ScanView.MERGED
    unmerged: ChangeTarget | None = None
    """How rows are read of which none takes the place of another."""
    left_out: tuple[DataFile, ...] = ()
    """What the view does not show."""

    @property
    def shows_snapshot(self) -> bool:
        """Whether it is the rows of a snapshot that it shows, as readers see them."""
        is_whole = self.query.commit_id is None and self.query.after_sequence is None
        return self.view is ScanView.MERGED and is_whole and self.snapshot_id > 0

    @property
    def output_schema(self) -> pa.Schema:
        return self.target.output_schema if self.unmerged is None else self.unmerged.output_schema


def plan_scan(runtime: Runtime, table: TableInfo, request: ScanRequest) -> ScanPlan:
    """Decides what to read; the head is that of `table`. Raises InvalidInputError for wrong columns or a wrong
    predicate, NotFoundError for a snapshot that is not there."""
    view = view_of(ScanView, request.view)
    snapshot_id, schema = resolve_request(runtime, table, request)
    columns = choose_columns(schema, (*schema.names, COMMIT_COLUMN) if request.with_commits else request.columns)
    predicate = bind_where(request.where, schema)
    query = file_query(table, schema, snapshot_id, predicate, request)
    found = files.load_files(runtime.catalog, query)
    merges = bool(table.primary_key_ids)
    splits = arrange_splits(found.files, found.partitions, merges=merges)
    if query.with_bounds and predicate is not None and view is not ScanView.UNMERGED:
        splits = [kept for split in splits if (kept := _hopeful(split, predicate)).files]
    left_out: tuple[DataFile, ...] = ()
    if view is ScanView.READ_OPTIMIZED and merges:
        splits, left_out = base_splits(splits, is_newest=table.merge.is_newest)
    own_files = [file for split in splits for file in split.files]
    target = target_of(runtime, table, schema, columns, predicate, own_files)
    return ScanPlan(
        table=table,
        request=request,
        snapshot_id=snapshot_id,
        schema=schema,
        predicate=predicate,
        query=query,
        target=replace(target, among=request.among),
        splits=tuple(splits),
        partition_ids=tuple(found.partitions),
        view=view,
        left_out=left_out,
        unmerged=change_target(target, schema, view=ChangeView.ALL, after_id=0) if view is ScanView.UNMERGED else None,
    )


def narrow_scan(runtime: Runtime, plan: ScanPlan, columns: Sequence[str], where: Predicate | None) -> ScanPlan:
    """The scan in fewer columns, and of the rows for which a predicate holds as well."""
    if plan.unmerged is not None:
        return plan
    own = plan.request.at
    both = [each for each in (plan.predicate, where) if each is not None]
    request = replace(
        plan.request,
        columns=tuple(columns),
        where=all_of(both) if both else None,
        at=None if own is None else plan.snapshot_id,
        with_commits=False,
        schema_id=plan.schema.id,
    )
    return plan_scan(runtime, plan.table, request)


def target_of(
    runtime: Runtime,
    table: TableInfo,
    schema: TableSchema,
    columns: tuple[Column, ...],
    predicate: Predicate | None,
    own_files: Iterable[DataFile],
) -> ReadTarget:
    """What reading takes, of files that may be of any version of the schema."""
    schemas = load_schemas(runtime, table, schema, {file.schema_id for file in own_files})
    return ReadTarget(
        location=table.location,
        schemas={each.id: each.in_files for each in schemas.values()},
        columns=columns,
        predicate=predicate,
        asked_columns=asked_columns(schema, predicate),
        primary_key=schema.select(table.primary_key_ids),
        partition_by=schema.select(table.partition_ids),
        sequence_by=schema.select(table.sequence_ids),
        engine=merge_engine(table, schema),
    )


def find_lag(runtime: Runtime, plan: ScanPlan) -> Lag:
    """How far the scan is behind its snapshot: by the files of which it shows nothing."""
    sequences = {file.sequence for file in plan.left_out if file.sequence is not None}
    if not sequences:
        return NO_LAG
    return Lag(
        snapshots=len(sequences),
        rows=sum(file.row_count for file in plan.left_out),
        age=snapshots.find_age(runtime.catalog, plan.table.id, min(sequences)),
    )


def read_table(runtime: Runtime, plan: ScanPlan) -> pa.Table:
    """All rows of the scan."""
    schema = plan.output_schema
    with Held(runtime, plan), _shown(plan, "Reading") as shown:
        parts = collect_in_order(*_reading(runtime, plan, shown), runtime.read_threads)
    return pa.concat_tables([pa.Table.from_batches([], schema), *parts])


def read_some(runtime: Runtime, plan: ScanPlan, most: int) -> pa.Table:
    """The first so many rows in the order of the splits. Raises InvalidInputError for what is no number of rows."""
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        raise InvalidInputError(
            f"{most!r} is no number of rows.", kind="invalid_limit", remedy="Give a whole number from 0."
        )
    found, missing = [pa.Table.from_batches([], plan.output_schema)], most
    with Held(runtime, plan):
        gathered, read_one = _reading(runtime, plan)
        parts = (part for splits in gathered for part in read_one(splits))
        while missing > 0 and (part := next(parts, None)) is not None:
            found.append(part)
            missing -= part.num_rows
    return pa.concat_tables(found).slice(0, most)


def stream_batches(runtime: Runtime, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    """The rows of the scan in batches, a few ahead of the consumer. Closing the iterator ends the read."""
    with Held(runtime, plan):
        yield from stream_held(runtime, plan)


def stream_held(runtime: Runtime, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    """As `stream_batches`, of a snapshot that the caller holds."""
    for part in stream_as_ready(*_reading(runtime, plan), runtime.read_threads):
        yield from part.to_batches(max_chunksize=plan.table.options.read_batch_rows)


def count_rows(runtime: Runtime, plan: ScanPlan, session: Any = None) -> int:
    """How many rows the scan has, counted here or on Spark. Files whose rows all count are not opened."""
    merges = bool(plan.table.primary_key_ids)
    known = 0
    splits = []
    for split in plan.splits:
        if plan.predicate is None and not (merges and needs_merge(split)) and _holds_whole_files(split):
            known += sum(file.row_count for file in split.files)
        else:
            splits.append(split)
    narrow = plan.target.columns[:1] if not merges else plan.target.primary_key[:1]
    counted = replace(plan, splits=tuple(splits), target=replace(plan.target, columns=narrow))
    if session is not None and splits:
        with Held(runtime, counted):
            return known + int(engines.read_frame(session, runtime.storage, counted.target, counted.splits).count())
    with Held(runtime, counted), _shown(counted, "Counting") as shown:
        for part in stream_as_ready(*_reading(runtime, counted, shown), runtime.read_threads):
            known += part.num_rows
    return known


def _reading(
    runtime: Runtime, plan: ScanPlan, shown: Bar = SILENT
) -> tuple[Sequence[Sequence[Split]], Callable[[Sequence[Split]], Iterator[pa.Table]]]:
    """The splits, those together that are read together, and how they are read."""
    gathered = list(gather_splits(plan.splits, merges=bool(plan.target.primary_key)))
    threads_each = max(1, runtime.read_threads // max(1, len(gathered)))

    def read(splits: Sequence[Split]) -> Iterator[pa.Table]:
        if plan.unmerged is None:
            yield from read_splits(runtime.storage, plan.target, splits, threads_each)
        else:
            for own in file_by_file(splits):
                yield from read_changes(runtime.storage, plan.unmerged, own)
        shown.advance(sum(split.size_bytes for split in splits))

    return gathered, read


def file_by_file(splits: Iterable[Split]) -> list[ChangeSplit]:
    """Each file's rows by themselves, oldest first."""
    return [
        ChangeSplit(way=Way.FRESH, partition=split.partition, depth=split.depth, prefix=split.prefix, fresh=(file,))
        for split in splits
        for file in split.files
    ]


def _shown(plan: ScanPlan, doing: str) -> AbstractContextManager[Bar]:
    """By bytes of files."""
    return bar(f"{doing} {plan.table.full_name}", sum(split.size_bytes for split in plan.splits))


def _hopeful(split: Split, predicate: Predicate) -> Split:
    """The split with those files only that may have matching rows, where none of its rows supersedes another."""
    if needs_merge(split):
        return split
    return replace(split, files=tuple(file for file in split.files if file_may_match(predicate, file)))


def _holds_whole_files(split: Split) -> bool:
    """Whether all rows of its files are the split's: those of a shallower file are shared with its neighbours."""
    return all(file.depth >= split.depth for file in split.files)


def resolve_snapshot(runtime: Runtime, table: TableInfo, at: At) -> Snapshot | None:
    """The snapshot that `at` means: None is the head (None if the table has none), a number, "tag:…", or a moment;
    each but None also as text. Raises NotFoundError for one that is not there."""
    match parse_at(at) if isinstance(at, str) else at:
        case None:
            return snapshots.find_head(runtime.catalog, table)
        case str() as tag:
            return tagged(runtime, table, tag.removeprefix(TAG_PREFIX))
        case datetime() as moment if moment.tzinfo is not None:
            return _at_moment(runtime, table, moment)
        case other:
            return _numbered(runtime, table, other)


def staged_view(
    commit_id: UUID, scope: str, beneath: Sequence[UUID] = (), commit: CommitInfo | None = None
) -> StagedView:
    """Raises InvalidInputError for an unknown scope, and for commits beneath rows that are looked at alone."""
    if scope not in ("merged", "staged"):
        raise InvalidInputError(f"scope is {scope!r}.", kind="invalid_scope", remedy='Give "merged" or "staged".')
    if beneath and scope == "staged":
        raise InvalidInputError(
            "on_top_of names commits, and scope is 'staged': the commit's own rows.",
            kind="invalid_scope",
            remedy='Give scope "merged", or no on_top_of.',
        )
    return StagedView(commit_id=commit_id, scope=scope, beneath=tuple(beneath), commit=commit)


def view_after(commit_ids: Sequence[UUID]) -> StagedView | None:
    """The table as publishing these commits of it in one transaction would leave it; None for no commits."""
    return staged_view(commit_ids[-1], "merged", commit_ids[:-1]) if commit_ids else None


def _numbered(runtime: Runtime, table: TableInfo, at: object) -> Snapshot:
    """`at` may be any kind of integer, such as NumPy's."""
    try:
        number = operator.index(at)  # type: ignore[arg-type]
    except TypeError:
        raise wrong_at(at) from None
    if isinstance(at, bool):
        raise wrong_at(at)
    found = snapshots.find_snapshot(runtime.catalog, table.id, number) if 0 < number < 2**63 else None
    if found is None:
        raise snapshots.missing_snapshot(runtime.catalog, table, number)
    return found


def tagged(runtime: Runtime, table: TableInfo, tag: str) -> Snapshot:
    """The snapshot that a tag pins. Raises NotFoundError for a tag that is not there."""
    found = snapshots.find_tagged_snapshot(runtime.catalog, table.id, tag) if is_storable(tag) else None
    if found is None:
        raise NotFoundError(
            f"Table {table.full_name} has no tag {tag!r}.", kind="tag_not_found", remedy="Check its name."
        )
    return found


def _at_moment(runtime: Runtime, table: TableInfo, moment: datetime) -> Snapshot:
    found = snapshots.find_snapshot_at(runtime.catalog, table.id, moment)
    if found is None:
        raise snapshots.missing_moment(runtime.catalog, table, moment)
    return found


def resolve_request(runtime: Runtime, table: TableInfo, request: ScanRequest) -> tuple[int, TableSchema]:
    """The snapshot to read and the schema to read it in: that of its own time."""
    if request.staged is not None:
        commit = request.staged.commit or commits.load_commit(runtime.catalog, request.staged.commit_id)
        _check_readable(runtime, table, commit, request.staged.scope)
        return table.head_id, schema_of_staged(runtime, table, commit, request.staged.beneath)
    if request.at is None:
        return table.head_id, table.schema
    snapshot = resolve_snapshot(runtime, table, request.at)
    assert snapshot is not None
    return snapshot.id, load_schema(runtime, table, request.schema_id or snapshot.schema_id)


def schema_of_staged(
    runtime: Runtime, table: TableInfo, commit: CommitInfo, beneath: Sequence[UUID] = ()
) -> TableSchema:
    """That of the table as publishing a staged commit, on top of those beneath, would leave it."""
    changed = commit.new_schema_id
    if changed is None and beneath:
        changed = commits.find_schema_changed(runtime.catalog, beneath)
    return load_schema(runtime, table, table.schema.id if changed is None else changed)


def _check_readable(runtime: Runtime, table: TableInfo, commit: CommitInfo, scope: str) -> None:
    """The files of a commit go when it expires, those of a published one when the snapshots do that have them."""
    if commit.state is CommitState.EXPIRED:
        raise NotFoundError(
            f"Commit {commit.id} of {table.full_name} has expired ({commit.reason}): its rows are given up.",
            kind="commit_expired",
            remedy="Stage the work again.",
        )
    if (
        scope == "staged"
        and commit.snapshot_id is not None
        and snapshots.find_snapshot(runtime.catalog, table.id, commit.snapshot_id) is None
    ):
        raise snapshots.missing_snapshot(runtime.catalog, table, commit.snapshot_id)


def schema_at(runtime: Runtime, table: TableInfo, snapshot_id: int) -> TableSchema:
    """The schema of the table as of a snapshot. Raises NotFoundError for one that is not there, or has expired."""
    if snapshot_id == table.head_id:
        return table.schema
    snapshot = snapshots.find_snapshot(runtime.catalog, table.id, snapshot_id)
    if snapshot is None:
        raise snapshots.missing_snapshot(runtime.catalog, table, snapshot_id)
    return load_schema(runtime, table, snapshot.schema_id)


def load_schema(runtime: Runtime, table: TableInfo, schema_id: int) -> TableSchema:
    """A version of the table's schema."""
    if schema_id == table.schema.id:
        return table.schema
    return tables.load_schemas(runtime.catalog, table.id, {schema_id})[schema_id]


def load_schemas(runtime: Runtime, table: TableInfo, schema: TableSchema, ids: set[int]) -> dict[int, TableSchema]:
    """These versions of the table's schema, and those that are at hand."""
    known = {schema.id: schema, table.schema.id: table.schema}
    missing = ids - known.keys()
    return known | (tables.load_schemas(runtime.catalog, table.id, missing) if missing else {})


def choose_columns(schema: TableSchema, names: Sequence[str] | None) -> tuple[Column, ...]:
    """The columns of these names, `_commit` if it is one; all of the schema for None. Raises InvalidInputError."""
    if names is None:
        return schema.columns
    if isinstance(names, str) or not names:
        raise InvalidInputError(f"columns is {names!r}.", kind="invalid_columns", remedy="Give a list of column names.")
    chosen: list[Column] = []
    for name in names:
        column = COMMIT if name == COMMIT_COLUMN else schema.find(name) if isinstance(name, str) else None
        if column is None:
            raise InvalidInputError(
                f"There is no column {name!r}.",
                kind="unknown_column",
                remedy=choose_from("Columns", name, (*schema.names, COMMIT_COLUMN)),
            )
        if column in chosen:
            raise InvalidInputError(f"Column {name!r} is named twice.", kind="invalid_columns", remedy="Name it once.")
        chosen.append(column)
    return tuple(chosen)


def file_query(
    table: TableInfo,
    schema: TableSchema,
    snapshot_id: int,
    predicate: Predicate | None,
    request: ScanRequest = EVERYTHING,
) -> files.FileQuery:
    """Which files may have matching rows. All columns rule files out where rows are not merged; else only those that
    all versions of a row share."""
    staged = request.staged
    asked = frozenset() if predicate is None else columns_of(predicate)
    shared = frozenset(table.primary_key_ids + table.partition_ids)
    merges = bool(table.primary_key_ids)
    return files.FileQuery(
        table_id=table.id,
        snapshot_id=snapshot_id,
        commit_id=staged.commit_id if staged else None,
        staged_only=staged is not None and staged.scope == "staged",
        partition_by=schema.select(table.partition_ids),
        partition_predicate=predicate if asked & set(table.partition_ids) else None,
        file_predicate=predicate if not merges or asked & shared else None,
        usable_ids=shared if merges else frozenset(column.id for column in schema.columns),
        hash_prefixes=request.hash_prefixes
        or (_hash_prefixes(schema.select(table.primary_key_ids), predicate) if merges else None),
        with_bounds=request.with_bounds or (merges and bool(asked - shared)),
        partition_ids=request.partition_ids,
        beneath=staged.beneath if staged else (),
        after_sequence=request.after_sequence,
    )


def _hash_prefixes(primary_key: tuple[Column, ...], predicate: Predicate | None) -> tuple[int, ...] | None:
    """Where the keys are that the predicate asks for, if it names them."""
    keys = None if predicate is None else key_tuples(predicate, primary_key)
    if keys is None:
        return None
    arrays: list[Any] = [
        arrow_values(column.type, [key[position] for key in keys]) for position, column in enumerate(primary_key)
    ]
    return tuple(sorted(set(hash_prefixes(key_hashes(arrays), MAX_DEPTH).tolist())))
