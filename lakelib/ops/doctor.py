"""Use case: a lake is examined, beside its readers and writers.

Step by step: what the connected user may do, and whether the clocks agree; whether the catalog agrees with itself; for
each table, what is stored, against what the catalog names: a listing, a page of the catalog's files at a time, each
file's footer, and if it is to be a deep look, all rows. Then what it was told to put right.

What changes meanwhile is no finding: whatever looks wrong is asked for again, first in the storage and then in the
catalog, which forgets a file before it is deleted. Files that are staged after the listing began are left out.
Memory does not grow with the lake: a bit for each file of a table, and the first findings of each kind.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice

from lakelib.catalog import doctor as catalog_doctor
from lakelib.catalog import tables
from lakelib.catalog.doctor import ExaminedFile, ExaminedTable, FileSpan
from lakelib.errors import CorruptionError, InvalidInputError, NotFoundError
from lakelib.model.doctor import REPAIRS, DoctorReport, Finding, Repair, Severity
from lakelib.model.schema import TableSchema
from lakelib.model.table import TableInfo
from lakelib.ops.backup import bring_back
from lakelib.ops.create import split_name
from lakelib.ops.expire import check_length
from lakelib.ops.runtime import Runtime
from lakelib.rows.verify import Breach, Promise
from lakelib.storage.file_check import check_file
from lakelib.storage.filesystem import Storage
from lakelib.storage.listing import FileEntry
from lakelib.storage.paths import is_own_file, leads_back

DEFAULT_GRACE = timedelta(days=1)
_ASKED_AT_ONCE = 1000
_KEPT_FINDINGS = 1000
_NOTED_LAG = timedelta(seconds=5)
_DANGEROUS_LAG = timedelta(minutes=5)
"""From here on a vacuum may take files for older than they are."""

Tell = Callable[[Finding], None]

_RESTORE = "Restore the file from a bucket version, or from a backup: `lake doctor --repair files --from BACKUP --yes`."
_REWRITE = (
    "Restore the file from a backup if it was right there; else write its partition anew: lakelib made it, or somebody"
    " else has changed it."
)
_REMEDIES = dict.fromkeys(("missing_file", "truncated_file", "replaced_file", "unreadable_file"), _RESTORE)


@dataclass(slots=True)
class _Account:
    """What has been found so far."""

    tell: Tell | None
    files: int = 0
    size_bytes: int = 0
    unstaged: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    damaged: list[tuple[ExaminedTable, str, int]] = field(default_factory=list)
    """Files that a backup may bring back: table, path, size."""

    def add(self, finding: Finding) -> None:
        self.counts[finding.kind] += 1
        if self.counts[finding.kind] <= _KEPT_FINDINGS:
            self.findings.append(finding)
        if self.tell is not None:
            self.tell(finding)


class _Marks:
    """Some files of a span: a bit each."""

    def __init__(self, span: FileSpan) -> None:
        self._span = span
        self._bits = bytearray((span.last_id - span.first_id) // 8 + 1)

    def add(self, file_id: int) -> None:
        if self._span.first_id <= file_id <= self._span.last_id:
            byte, bit = divmod(file_id - self._span.first_id, 8)
            self._bits[byte] |= 1 << bit

    def __contains__(self, file_id: int) -> bool:
        byte, bit = divmod(file_id - self._span.first_id, 8)
        return bool(self._bits[byte] >> bit & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """One table being compared with its storage."""

    runtime: Runtime
    table: ExaminedTable
    storage: Storage
    deep: bool
    grace: timedelta
    now: datetime
    account: _Account
    pool: ThreadPoolExecutor

    def tell(self, severity: Severity, kind: str, path: str, detail: str, remedy: str) -> None:
        place = self.storage.uri_of(path)
        self.account.add(
            Finding(severity=severity, kind=kind, table=self.table.name, place=place, detail=detail, remedy=remedy)
        )


def examine(
    runtime: Runtime,
    names: Sequence[str],
    *,
    deep: bool,
    repair: Collection[str],
    backup: str | None,
    dry_run: bool,
    grace: timedelta,
    tell: Tell | None = None,
    more: Sequence[Finding] = (),
) -> DoctorReport:
    """The lake's health, or that of some tables. `repair` names what is to be put right (see `REPAIRS`), a dry run only
    tells; `backup` is where damaged files come back from. `tell` hears of every finding. A file that no commit names
    counts as an orphan from the age `grace` on. `more` are findings that the caller has made.

    Raises NotFoundError for a table that is not there, RetryableError if the catalog or the store is out of reach.
    """
    began = time.monotonic()
    _check_request(deep, repair, backup, dry_run, grace)
    account = _Account(tell=tell)
    chosen = _choose(runtime, names)
    ids = [table.id for table in chosen]
    for finding in (
        *more,
        *_check_surroundings(runtime),
        *catalog_doctor.check_catalog(runtime.catalog, ids),
        *catalog_doctor.check_holds(runtime.catalog, ids),
    ):
        account.add(finding)
    with ThreadPoolExecutor(runtime.read_threads, thread_name_prefix="lakelib-doctor") as pool:
        for table in chosen:
            with suppress(NotFoundError):  # it was dropped meanwhile
                _examine_table(_visit(runtime, table, deep, grace, account, pool))
    return DoctorReport(
        deep=deep,
        dry_run=dry_run,
        tables=tuple(table.name for table in chosen),
        files=account.files,
        size_bytes=account.size_bytes,
        unstaged=account.unstaged,
        findings=tuple(account.findings),
        counts=dict(account.counts),
        repairs=tuple(_repair(runtime, ids, repair, account, backup, dry_run=dry_run)),
        seconds=time.monotonic() - began,
    )


def _check_request(
    deep: object, repair: Collection[str], backup: str | None, dry_run: object, grace: timedelta
) -> None:
    check_length("grace", grace)
    for name, value in (("deep", deep), ("dry_run", dry_run)):
        if not isinstance(value, bool):
            raise InvalidInputError(f"{name} is {value!r}.", kind="invalid_repair", remedy="Give True or False.")
    if isinstance(repair, str) or any(one not in REPAIRS for one in repair):
        raise InvalidInputError(
            f"repair is {repair!r}.", kind="invalid_repair", remedy=f"Give a list of some of: {', '.join(REPAIRS)}."
        )
    if ("files" in repair) != (backup is not None):
        raise InvalidInputError(
            "Damaged files are brought back from a backup, and "
            + ("none is named." if backup is None else "repair does not name files."),
            kind="invalid_repair",
            remedy='Give both: repair=["files"] and where the backup is.',
        )


def _choose(runtime: Runtime, names: Sequence[str]) -> list[ExaminedTable]:
    known = {table.name: table for table in catalog_doctor.list_tables(runtime.catalog)}
    for name in names:
        split_name(name)
        if name not in known:
            raise tables.table_missing(name)
    return [table for name, table in known.items() if not names or name in set(names)]


def _check_surroundings(runtime: Runtime) -> Iterator[Finding]:
    """What is not about one table: who looks, whose lake it is, and the clocks."""
    yield from catalog_doctor.check_rights(runtime.catalog)
    yield from _check_clocks(runtime)


def _check_clocks(runtime: Runtime) -> Iterator[Finding]:
    ahead, blur = catalog_doctor.measure_clock(runtime.catalog)
    yield from _lag("the catalog", "this host", ahead, blur)
    began = datetime.now(UTC)
    told = runtime.storage.clock()
    if told is not None:
        half = (datetime.now(UTC) - began) / 2
        second = timedelta(seconds=1)  # the finest that a store tells
        yield from _lag("the catalog", "the storage", ahead - (told - (began + half)), blur + half + second)


def _lag(one: str, other: str, ahead: timedelta, blur: timedelta) -> Iterator[Finding]:
    lag = abs(ahead) - blur
    if lag < _NOTED_LAG:
        return
    seconds = f"{abs(ahead).total_seconds():,.0f} s"
    yield Finding(
        severity=Severity.AT_RISK if lag > _DANGEROUS_LAG else Severity.NOTABLE,
        kind="clocks_differ",
        table=None,
        place=f"{one} and {other}",
        detail=f"the clock of {one} is {seconds} {'ahead of' if ahead > timedelta(0) else 'behind'} that of {other}",
        remedy="Keep both in step (NTP). Until then let vacuum's grace be longer by as much.",
    )


def _visit(
    runtime: Runtime,
    table: ExaminedTable,
    deep: bool,
    grace: timedelta,
    account: _Account,
    pool: ThreadPoolExecutor,
) -> _Visit:
    return _Visit(
        runtime=runtime,
        table=table,
        storage=runtime.storage.at(table.location),
        deep=deep,
        grace=grace,
        now=datetime.now(UTC),
        account=account,
        pool=pool,
    )


def _examine_table(visit: _Visit) -> None:
    catalog, table = visit.runtime.catalog, visit.table
    span = catalog_doctor.find_span(catalog, table.id) or FileSpan(first_id=0, last_id=0)
    seen, resized = _Marks(span), _Marks(span)
    _walk_storage(visit, seen, resized)
    promises = _Promises(visit)
    after = ""
    while page := catalog_doctor.load_page(catalog, table.id, span, after):
        after = page[-1].file.path
        visit.account.files += len(page)
        visit.account.size_bytes += sum(one.file.size_bytes for one in page)
        _tell_missing(visit, [one for one in page if one.file.id not in seen])
        _tell_resized(visit, [one for one in page if one.file.id in resized])
        _tell_broken(visit, promises, [one for one in page if one.file.id in seen and one.file.id not in resized])


def _walk_storage(visit: _Visit, seen: _Marks, resized: _Marks) -> None:
    """Marks the files that are stored, and those of another size, and tells of those that nobody names."""
    own = (entry for entry in visit.storage.list_files() if is_own_file(entry.path) and leads_back(entry.path))
    while listed := list(islice(own, _ASKED_AT_ONCE)):
        known = catalog_doctor.find_known(visit.runtime.catalog, visit.table.id, [entry.path for entry in listed])
        for entry in listed:
            found = known.get(entry.path)
            if found is not None and found.id is not None:
                seen.add(found.id)
                if entry.size_bytes != found.size_bytes:
                    resized.add(found.id)
        strange = [entry for entry in listed if entry.path not in known]
        old = [entry for entry in strange if entry.modified_at < visit.now - visit.grace]
        visit.account.unstaged += len(strange) - len(old)
        _tell_orphans(visit, old)
        _tell_future(visit, [entry for entry in strange if entry.modified_at > visit.now + _DANGEROUS_LAG])


def _tell_orphans(visit: _Visit, entries: Sequence[FileEntry]) -> None:
    """Of files that were deleted meanwhile nothing is told."""
    if not entries:
        return
    there = visit.pool.map(lambda entry: visit.storage.exists(entry.path), entries)
    left = [entry for entry, exists in zip(entries, there, strict=True) if exists]
    known = catalog_doctor.find_known(visit.runtime.catalog, visit.table.id, [entry.path for entry in left])
    for entry in left:
        if entry.path not in known:
            hours = (visit.now - entry.modified_at) / timedelta(hours=1)
            visit.tell(
                Severity.NOTABLE,
                "orphaned_file",
                entry.path,
                f"no commit names it; it has {entry.size_bytes:,} bytes and is {hours:,.1f} hours old",
                "Nothing: the next `lake vacuum` deletes it.",
            )


def _tell_future(visit: _Visit, entries: Sequence[FileEntry]) -> None:
    for entry in entries:
        visit.tell(
            Severity.AT_RISK,
            "future_file",
            entry.path,
            f"the storage says that it was written at {entry.modified_at.isoformat(sep=' ', timespec='seconds')},"
            " which is yet to come",
            "Set the storage's clock: by a file's age a vacuum knows what a writer may still need.",
        )


def _tell_missing(visit: _Visit, unseen: Sequence[ExaminedFile]) -> None:
    gone = [
        one
        for one, exists in zip(
            unseen, visit.pool.map(lambda one: visit.storage.exists(one.file.path), unseen), strict=True
        )
        if not exists
    ]
    for one in _still_named(visit, gone):
        _tell_damage(visit, one, Breach(kind="missing_file", detail=f"it is not there{_whose(one)}"))


def _tell_resized(visit: _Visit, files: Sequence[ExaminedFile]) -> None:
    for one in _still_named(visit, files):
        known = one.file.size_bytes
        with suppress(CorruptionError):  # it is gone meanwhile
            found = visit.storage.size(one.file.path, named_by_catalog=True)
            if found != known:
                kind = "truncated_file" if found < known else "replaced_file"
                detail = f"it has {found:,} bytes, and the catalog knows it with {known:,}{_whose(one)}"
                _tell_damage(visit, one, Breach(kind=kind, detail=detail))


def _tell_broken(visit: _Visit, promises: "_Promises", stored: Sequence[ExaminedFile]) -> None:
    checked = [promises.of(one) for one in stored]
    found = visit.pool.map(lambda promise: check_file(visit.storage, promise, deep=visit.deep), checked)
    broken = {one.file.id: breaches for one, breaches in zip(stored, found, strict=True) if breaches}
    for one in _still_named(visit, [one for one in stored if one.file.id in broken]):
        for breach in broken[one.file.id]:
            _tell_damage(visit, one, breach)


def _still_named(visit: _Visit, files: Sequence[ExaminedFile]) -> list[ExaminedFile]:
    named = catalog_doctor.find_named(visit.runtime.catalog, [one.file.id for one in files]) if files else set()
    return [one for one in files if one.file.id in named]


def _tell_damage(visit: _Visit, one: ExaminedFile, breach: Breach) -> None:
    if breach.kind in _REMEDIES:
        visit.account.damaged.append((visit.table, one.file.path, one.file.size_bytes))
    visit.tell(Severity.DAMAGED, breach.kind, one.file.path, breach.detail, _REMEDIES.get(breach.kind, _REWRITE))


def _whose(one: ExaminedFile) -> str:
    file = one.file
    if file.added_snapshot is None:
        return "; a staged commit names it"
    until = "on" if file.removed_snapshot is None else f"to {file.removed_snapshot - 1}"
    return f"; {file.row_count:,} rows of the snapshots from {file.added_snapshot} {until}"


class _Promises:
    """What the catalog promises of files: their schema versions are loaded when they are first met."""

    def __init__(self, visit: _Visit) -> None:
        self._catalog = visit.runtime.catalog
        self._table: TableInfo = tables.load_table(self._catalog, visit.table.id, visit.table.name)
        self._schemas: dict[int, TableSchema] = {}

    def of(self, one: ExaminedFile) -> Promise:
        schema = self._schema(one.file.schema_id)
        partitions = [schema.by_id(column_id) for column_id in self._table.partition_ids]
        return Promise(
            file=one.file,
            columns=schema.columns,
            primary_key=schema.select(self._table.primary_key_ids),
            partition_by=tuple(column for column in partitions if column is not None),
            partition_key=one.partition_key,
        )

    def _schema(self, schema_id: int) -> TableSchema:
        if schema_id not in self._schemas:
            self._schemas |= tables.load_schemas(self._catalog, self._table.id, {schema_id})
        return self._schemas[schema_id]


def _repair(
    runtime: Runtime,
    table_ids: Sequence[int],
    repair: Collection[str],
    account: _Account,
    backup: str | None,
    *,
    dry_run: bool,
) -> Iterator[Repair]:
    if "queue" in repair:
        yield from catalog_doctor.unqueue(runtime.catalog, table_ids, dry_run=dry_run)
    if "leases" in repair:
        yield from catalog_doctor.drop_leases(runtime.catalog, table_ids, dry_run=dry_run)
    if "files" in repair and backup is not None:
        damaged = [(table.name, table.location, path, size_bytes) for table, path, size_bytes in account.damaged]
        for name, uri in bring_back(runtime.storage, runtime.storage.at(backup), damaged, dry_run=dry_run):
            yield Repair(kind="files", table=name, place=uri)
