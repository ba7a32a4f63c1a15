"""Use case: a table's snapshots are told as versions of a Delta log, in the order in which they were published.

Step by step: where the log is, whose it is, and whether it is whole; the snapshots that it does not have yet, many at a
time; each as a version, unless another exporter was first; a checkpoint, if one is due; log files that are over their
time go. Any number of exporters do it at once, and one that was killed leaves nothing but what is right: all write the
same, a version is written once, and none before the one before it.

Snapshots that have expired before they were told are left out: the log begins anew behind them, with a checkpoint.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import NAMESPACE_URL, uuid5

from lakelib.catalog import exports, snapshots, tables
from lakelib.catalog.roles import load_rights, require_right
from lakelib.dataclass import dataclass
from lakelib.errors import (
    ExpiredError,
    LakeError,
    NotFoundError,
    RetryableError,
)
from lakelib.interop.delta.actions import Action, Add, LogState, Txn
from lakelib.interop.delta.log import (
    Listing,
    create_versions,
    list_log,
    read_checkpoint,
    read_version,
    version_path,
    write_checkpoint,
)
from lakelib.interop.delta.note import Note, find_note
from lakelib.interop.delta.schema import Mixed, find_naming
from lakelib.interop.delta.translate import TableFacts, Version, milliseconds, plan_state, plan_version, version_of
from lakelib.model.exports import DeltaExport
from lakelib.model.roles import Right
from lakelib.model.table import Snapshot, TableInfo, TableRef
from lakelib.ops.delta_content import HEAD, Batch, NotByThisUser, NotTold, ToldState, load_batch
from lakelib.ops.delta_log import OwnLog, clean_up, known_mode
from lakelib.ops.merging import require_newest
from lakelib.ops.runtime import Runtime
from lakelib.storage.filesystem import Storage

_LOG = logging.getLogger(__name__)
_BATCH_SNAPSHOTS = 200
_WRITTEN_AT_ONCE = 50
_MOST_REMEMBERED = 16


def export_delta(runtime: Runtime, ref: TableRef) -> DeltaExport:
    """The log has all versions that can be told. Raises ConflictError for a log that somebody else writes to,
    CorruptionError for one that is not whole."""
    _check_may_export(runtime)
    runtime.ownership.confirm()
    table = tables.load_table(runtime.catalog, ref)
    log = runtime.storage.at(table.location)
    listing = list_log(log)
    mode = table.options.delta or known_mode(log, listing)
    if mode == HEAD:
        require_newest(table, "A Delta log of the head")
    exporter = _Exporter(runtime, table, mode, log)
    result = exporter.catch_up(listing, None)
    deleted = clean_up(runtime, table, log, list_log(log))
    return replace(result, deleted=deleted)


def tell_log(runtime: Runtime, table: TableInfo, snapshot: Snapshot, most: int) -> str:
    """Tells of a snapshot that this process has published of a table with a log, and of others before it that the log
    lacks, `most` of them. What it does not tell of, or nothing."""
    log = runtime.storage.at(table.location)
    now = replace(table, head_id=snapshot.id)
    exporter = _Exporter(runtime, now, table.options.delta, log)
    actions = read_version(log, version_of(snapshot.id) - 1) if snapshot.id > 1 else None
    if actions is None:
        result = exporter.catch_up(list_log(log), most)
    else:
        result = exporter.go_on(version_of(snapshot.id) - 1, find_note(actions))
    return "" if result.is_complete else str(result)


def before_expiry(runtime: Runtime, table: TableInfo) -> None:
    """Tells of what may expire now, if the table has a log. What cannot be told keeps nothing from expiring."""
    if not table.options.delta:
        return
    try:
        export_delta(runtime, table.ref)
    except LakeError as error:
        _LOG.warning("snapshots of %s may expire that are not in its Delta log: %s", table.full_name, error)


def check_delta(runtime: Runtime, table: TableInfo, mode: str) -> None:
    """Raises ConflictError before a table is set to have a log where there is one that is not its own, or of the other
    mode; InvalidInputError where a log of its head would show versions that are not its rows."""
    if mode == HEAD:
        require_newest(table, "A Delta log of the head")
    log = runtime.storage.at(table.location)
    listing = list_log(log)
    if not listing.is_empty:
        OwnLog(runtime, table, mode, log).check(listing)


def delta_keeps(table: TableInfo) -> timedelta:
    """How long files stay that only expired versions of the log name."""
    return timedelta(hours=table.options.delta_keep_hours if table.options.delta else 0)


def _check_may_export(runtime: Runtime) -> None:
    if Right.MAINTAIN not in runtime.catalog.rights:
        load_rights(runtime.catalog)
    if Right.MAINTAIN not in runtime.catalog.rights:
        require_right(runtime.catalog, Right.WRITE)


@dataclass(slots=True)
class _Exporter:
    """One export of one table."""

    runtime: Runtime
    table: TableInfo
    mode: str
    log: Storage
    written: int = 0
    skipped: int = 0
    checkpoint: int | None = None
    facts: TableFacts | None = None
    state: ToldState | None = None
    """Of a table whose files have vectors: what the log says of the last version that was planned."""

    @property
    def own(self) -> OwnLog:
        return OwnLog(self.runtime, self.table, self.mode, self.log)

    def catch_up(self, listing: Listing, most: int | None) -> DeltaExport:
        """From where the log ends, `most` snapshots of it."""
        before = self.own.check(listing)
        if self.table.head_id == 0:
            return self._result(None, None)
        last = listing.versions[-1] if listing.versions else None
        due_from = listing.newest_checkpoint
        next_id = 1 if last is None else last + 2
        return self._run(next_id, before, most, due_from)

    def go_on(self, last: int, before: Note | None) -> DeltaExport:
        """From a version that is there on."""
        before = self.own.check_note(last, before)
        version, state = self.runtime.told.pop(self.table.id, (None, None))
        if version == last:
            self.state = state
        every = self.table.options.delta_checkpoint_versions
        past = (last - before.began) % every
        return self._run(last + 2, before, None, last - past)

    def _run(self, next_id: int, before: Note | None, most: int | None, checkpointed: int | None) -> DeltaExport:
        features: Sequence[str] = () if before is None else before.features
        until_id = self.table.head_id if most is None else min(self.table.head_id, next_id + most - 1)
        waits: str | None = None
        while next_id <= until_id:
            end_id = min(until_id, next_id + _BATCH_SNAPSHOTS - 1)
            batch = load_batch(self.runtime, self.table, self.mode, next_id, end_id)
            planned: list[Version] = []
            reached: object = None
            try:
                for snapshot_id in range(next_id, end_id + 1):
                    version = self._plan(batch, snapshot_id, before, features)
                    if before is None and version.number > 0:  # without it the version would be of no use
                        self._write_checkpoint(batch, version.note, version.actions)
                    planned.append(version)
                    before, features = version.note, version.note.features
                    if len(planned) >= _WRITTEN_AT_ONCE:
                        self._write(planned)
                        planned = []
            except (ExpiredError, NotTold, NotByThisUser) as reason:
                reached = reason
            try:
                self._write(planned)
            except _Overtaken as other:
                before, features, self.state = other.note, other.note.features, None
                next_id = other.note.snapshot + 1
                continue
            next_id = end_id + 1 if reached is None else snapshot_id
            checkpointed = self._checkpoint_if_due(batch, before, checkpointed)
            if reached is None:
                continue
            found = self._next_told(next_id, reached)
            if found is None:
                waits = str(reached)
                break
            self.skipped += found - next_id
            next_id, until_id, before, self.state = found, max(until_id, found), None, None
        if self.state is not None and self._has_vectors:
            self._remember(version_of(next_id - 1), self.state)
        return self._result(next_id - 1, waits)

    def _remember(self, version: int, state: ToldState) -> None:
        """Whoever publishes again in this process need not read the log for it."""
        if len(self.runtime.told) >= _MOST_REMEMBERED:
            self.runtime.told.clear()
        self.runtime.told[self.table.id] = (version, state)

    def _plan(self, batch: Batch, snapshot_id: int, before: Note | None, features: Sequence[str]) -> Version:
        """Raises ExpiredError for a snapshot that is there no more, NotTold and NotByThisUser for one that has to
        wait."""
        facts = batch.facts[snapshot_id]
        if not facts.is_kept:
            raise ExpiredError(f"Snapshot {snapshot_id} of {self.table.full_name} has expired.")
        content = batch.content(snapshot_id, before, self._state_before(batch, snapshot_id, before))
        planned = plan_version(self._facts(), facts, content, before, self.mode, kept_features=features)
        if isinstance(planned, Mixed):
            raise NotTold(
                f"files of snapshot {snapshot_id} call the column {planned.column!r} by several names: a compaction"
                " gives it one"
            )
        if self._has_vectors:
            self.state = ToldState() if before is None or self.state is None else self.state
            self.state.apply(planned.actions)
        return planned

    @property
    def _has_vectors(self) -> bool:
        return bool(self.table.primary_key_ids) and self.mode == HEAD

    def _state_before(self, batch: Batch, snapshot_id: int, before: Note | None) -> ToldState | None:
        """What the log says of the version before, where it takes that to tell of this one."""
        if before is None or (not self._has_vectors and batch.facts[snapshot_id - 1].is_kept):
            return None
        if self.state is None or not self._has_vectors:
            self.state = ToldState(self._replay(version_of(snapshot_id) - 1).files.values())
        return self.state

    def _write(self, versions: Sequence[Version]) -> None:
        """One after the other; those that another exporter has written meanwhile are there."""
        left = list(versions)
        while left:
            count = create_versions(self.log, [(each.number, each.actions) for each in left])
            self.written += count
            left = left[count:]
            if left:
                self._check_same(left.pop(0))

    def _check_same(self, version: Version) -> None:
        actions = read_version(self.log, version.number)
        if actions is None:
            raise RetryableError(
                f"{self.log.uri_of(version_path(version.number))} was being written by another one, and is not there.",
                kind="storage_unavailable",
                remedy="Try again.",
            )
        note = find_note(actions)
        if note is None or note.commit != version.note.commit:
            raise self.own.foreign(version.number)
        if tuple(actions) != version.actions:  # it has found other vectors for the same rows
            raise _Overtaken(note)

    def _checkpoint_if_due(self, batch: Batch, note: Note | None, checkpointed: int | None) -> int | None:
        if note is None:
            return checkpointed
        version, every = version_of(note.snapshot), self.table.options.delta_checkpoint_versions
        since = version - max(note.began, note.began if checkpointed is None else checkpointed)
        if since < every:
            return checkpointed
        try:
            self._write_checkpoint(batch, note, None)
        except NotFoundError:  # expired meanwhile: the next one is as good
            return checkpointed
        return version

    def _write_checkpoint(self, batch: Batch, note: Note, actions: Sequence[Action] | None) -> None:
        """`actions` are those of a version that tells of all files."""
        content = batch.contents_of(note)
        applications = [
            Txn(app_id=each.application, version=each.version, last_updated=milliseconds(each.committed_at))
            for each in exports.list_applications(self.runtime.catalog, self.table.id, note.snapshot)
        ]
        adds = None if actions is None else [each for each in actions if isinstance(each, Add)]
        if adds is None and self._has_vectors and self.state is not None:
            adds = list(self.state.all().values())
        state = plan_state(self._facts(), note, content, applications, adds)
        snapshots.check_kept(self.runtime.catalog, self.table, note.snapshot)
        self.checkpoint = version_of(note.snapshot)
        write_checkpoint(self.log, self.checkpoint, state)

    def _next_told(self, snapshot_id: int, reached: object) -> int | None:
        """The first snapshot behind one that was not told of, for that reason, from which the log goes on."""
        match reached:
            case NotByThisUser():
                return None
            case NotTold():
                return self._find_beginning(snapshot_id)
            case _:
                return self._first_kept(snapshot_id)

    def _first_kept(self, snapshot_id: int) -> int:
        return max(snapshot_id, exports.find_first_kept(self.runtime.catalog, self.table.id))

    def _find_beginning(self, snapshot_id: int) -> int | None:
        """The first snapshot behind this one that can be told of by itself, if the head can: from there on others
        can."""
        head_id: int = self.table.head_id
        if head_id == snapshot_id or not self._can_be_told(head_id):
            return None
        return next(each for each in range(snapshot_id + 1, head_id + 1) if self._can_be_told(each))

    def _can_be_told(self, snapshot_id: int) -> bool:
        """Whether its files call each column by one name."""
        found = exports.list_facts(self.runtime.catalog, self.table.id, snapshot_id, snapshot_id)[snapshot_id]
        if not found.is_kept:
            return False
        ids = exports.list_stored_schemas(self.runtime.catalog, self.table.id, snapshot_id)
        schemas = tables.load_schemas(self.runtime.catalog, self.table.id, ids | {found.snapshot.schema_id})
        now = schemas[found.snapshot.schema_id]
        return not isinstance(find_naming(now, [schemas[each] for each in sorted(ids)], None), Mixed)

    def _replay(self, version: int) -> LogState:
        """What the log says of a version."""
        listing, state, first = list_log(self.log), LogState(), 0
        checkpoint = max((each for each in listing.checkpoints if each <= version), default=None)
        if checkpoint is not None:
            state.apply(read_checkpoint(self.log, listing.checkpoints[checkpoint]))
            first = checkpoint + 1
        for each in range(first, version + 1):
            state.apply(read_version(self.log, each) or ())
        return state

    def _facts(self) -> TableFacts:
        if self.facts is not None:
            return self.facts
        first = exports.list_moments(self.runtime.catalog, self.table.id, {1})
        self.facts = TableFacts(
            id=uuid5(NAMESPACE_URL, self.table.location),
            name=self.table.full_name,
            partition_ids=self.table.partition_ids,
            created_ms=milliseconds(first[1]),
            has_key=bool(self.table.primary_key_ids),
            engine="lakelib",
        )
        return self.facts

    def _result(self, last_id: int | None, waits: str | None) -> DeltaExport:
        return DeltaExport(
            table=self.table.full_name,
            mode=self.mode,
            version=version_of(last_id) if last_id else None,
            head_version=version_of(self.table.head_id) if self.table.head_id else None,
            written=self.written,
            skipped=self.skipped,
            checkpoint=self.checkpoint,
            waits_for=waits,
        )


class _Overtaken(Exception):  # noqa: N818
    """Another exporter has told of the same in another way, which counts."""

    def __init__(self, note: Note) -> None:
        super().__init__(note.snapshot)
        self.note = note
