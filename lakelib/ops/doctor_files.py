"""Part of a use case, the doctor's: one table's files are compared with what is stored, each with what the catalog says
of it: its footer, or with all its rows.

The listing comes first and notes the files that it meets; then come pages of those that the catalog names. Whatever
looks wrong is asked for again, first in the storage and then in the catalog, which forgets a file before it is deleted.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import islice

from lakelib.catalog import doctor as catalog_doctor
from lakelib.catalog import tables
from lakelib.catalog.doctor import ExaminedFile, ExaminedTable, FileSpan
from lakelib.dataclass import dataclass
from lakelib.errors import CorruptionError
from lakelib.model.doctor import Finding, Harm
from lakelib.model.schema import TableSchema
from lakelib.model.table import TableInfo, TableRef
from lakelib.ops.runtime import Runtime
from lakelib.rows.verify import Breach, Promise, Verifier
from lakelib.storage.filesystem import Storage
from lakelib.storage.listing import FileEntry
from lakelib.storage.parquet import open_anew
from lakelib.storage.paths import is_own_file, leads_back
from lakelib.storage.vectors import read_vector

DANGEROUS_LAG = timedelta(minutes=5)
"""From here on a vacuum may take files for older than they are."""
_STEP_ROWS = 131_072
_HIDDEN_NAN = Breach(kind="hidden_nan", detail="it has NaN in columns whose statistics leave that out")


_ASKED_AT_ONCE = 1000
_KEPT_FINDINGS = 1000

Tell = Callable[[Finding], None]

_RESTORE = "Restore the file from a bucket version, or from a backup: `lake doctor --repair files --from BACKUP --yes`."
_REWRITE = (
    "Restore the file from a backup if it was right there; else write its partition anew: lakelib made it, or somebody"
    " else has changed it."
)
_FOUND_ANEW = "Readers find it anew, each for himself; a compaction of the partition (`lake compact --full`) ends that."
_ANEW = (
    "lakelib reads it right; engines that go by statistics, as DuckDB does, miss its rows with NaN until"
    " `lake compact --full` has written it anew."
)
_REMEDIES = dict.fromkeys(("missing_file", "truncated_file", "replaced_file", "unreadable_file"), _RESTORE)


@dataclass(slots=True)
class Account:
    """What has been found so far."""

    tell: Tell | None
    files: int = 0
    size_bytes: int = 0
    unstaged: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    damaged: list[tuple[ExaminedTable, str, int]] = field(default_factory=list)
    """Files that a backup may bring back: table, path, size."""
    unsettled: list[TableRef] = field(default_factory=list)
    """Tables of which a key stands in several partitions, and should not."""

    def add(self, finding: Finding) -> None:
        self.counts[finding.kind] += 1
        if self.counts[finding.kind] <= _KEPT_FINDINGS:
            self.findings.append(finding)
        if self.tell is not None:
            self.tell(finding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One table being compared with its storage."""

    runtime: Runtime
    table: ExaminedTable
    storage: Storage
    deep: bool
    grace: timedelta
    now: datetime
    account: Account
    pool: ThreadPoolExecutor

    def tell(self, severity: Harm, kind: str, path: str, detail: str, remedy: str) -> None:
        place = self.storage.uri_of(path)
        self.account.add(
            Finding(severity=severity, kind=kind, table=self.table.name, place=place, detail=detail, remedy=remedy)
        )


class _Noted:
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


def open_visit(
    runtime: Runtime, table: ExaminedTable, account: Account, pool: ThreadPoolExecutor, *, deep: bool, grace: timedelta
) -> Visit:
    return Visit(
        runtime=runtime,
        table=table,
        storage=runtime.storage.at(table.location),
        deep=deep,
        grace=grace,
        now=datetime.now(UTC),
        account=account,
        pool=pool,
    )


def examine_table(visit: Visit) -> None:
    """Tells the visit's account. Raises NotFoundError for a table that was dropped meanwhile."""
    catalog, table = visit.runtime.catalog, visit.table
    span = catalog_doctor.find_span(catalog, table.id) or FileSpan(first_id=0, last_id=0)
    seen, resized = _Noted(span), _Noted(span)
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
    _examine_masks(visit)


def _examine_masks(visit: Visit) -> None:
    """What hides rows from readers who do not merge. A lost one harms nobody: it is found anew, each time."""

    def find_damage(path: str) -> CorruptionError | None:
        try:
            read_vector(visit.storage, path)
        except CorruptionError as error:
            return error
        return None

    catalog, table, after = visit.runtime.catalog, visit.table, ""
    while page := catalog_doctor.load_mask_page(catalog, table.id, after):
        after = max(page)
        found = {path: damage for path, damage in zip(page, visit.pool.map(find_damage, page), strict=True) if damage}
        for path in sorted(catalog_doctor.find_masks(catalog, table.id, list(found)) if found else ()):
            detail = f"the mask of {page[path]} cannot be read: {found[path].message}"
            visit.tell(Harm.NOTABLE, "lost_mask", path, detail, _FOUND_ANEW)


def _walk_storage(visit: Visit, seen: _Noted, resized: _Noted) -> None:
    """Notes the files that are stored, and those of another size, and tells of those that nobody names."""
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
        _tell_future(visit, [entry for entry in strange if entry.modified_at > visit.now + DANGEROUS_LAG])


def _tell_orphans(visit: Visit, entries: Sequence[FileEntry]) -> None:
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
                Harm.NOTABLE,
                "orphaned_file",
                entry.path,
                f"no commit names it; it has {entry.size_bytes:,} bytes and is {hours:,.1f} hours old",
                "Nothing: the next `lake vacuum` deletes it.",
            )


def _tell_future(visit: Visit, entries: Sequence[FileEntry]) -> None:
    for entry in entries:
        visit.tell(
            Harm.AT_RISK,
            "future_file",
            entry.path,
            f"the storage says that it was written at {entry.modified_at.isoformat(sep=' ', timespec='seconds')},"
            " which is yet to come",
            "Set the storage's clock: by a file's age a vacuum knows what a writer may still need.",
        )


def _tell_missing(visit: Visit, unseen: Sequence[ExaminedFile]) -> None:
    gone = [
        one
        for one, exists in zip(
            unseen, visit.pool.map(lambda one: visit.storage.exists(one.file.path), unseen), strict=True
        )
        if not exists
    ]
    for one in _still_named(visit, gone):
        _tell_damage(visit, one, Breach(kind="missing_file", detail=f"it is not there{_whose(one)}"))


def _tell_resized(visit: Visit, files: Sequence[ExaminedFile]) -> None:
    for one in _still_named(visit, files):
        known = one.file.size_bytes
        with suppress(CorruptionError):  # it is gone meanwhile
            found = visit.storage.size(one.file.path, named_by_catalog=True)
            if found != known:
                kind = "truncated_file" if found < known else "replaced_file"
                detail = f"it has {found:,} bytes, and the catalog knows it with {known:,}{_whose(one)}"
                _tell_damage(visit, one, Breach(kind=kind, detail=detail))


def _tell_broken(visit: Visit, promises: "_Promises", stored: Sequence[ExaminedFile]) -> None:
    checked = [promises.of(one) for one in stored]
    found = visit.pool.map(lambda promise: check_file(visit.storage, promise, deep=visit.deep), checked)
    broken = {one.file.id: breaches for one, breaches in zip(stored, found, strict=True) if breaches}
    for one in _still_named(visit, [one for one in stored if one.file.id in broken]):
        for breach in broken[one.file.id]:
            _tell_breach(visit, one, breach)


def _still_named(visit: Visit, files: Sequence[ExaminedFile]) -> list[ExaminedFile]:
    named = catalog_doctor.find_named(visit.runtime.catalog, [one.file.id for one in files]) if files else set()
    return [one for one in files if one.file.id in named]


def _tell_damage(visit: Visit, one: ExaminedFile, breach: Breach) -> None:
    if breach.kind in _REMEDIES:
        visit.account.damaged.append((visit.table, one.file.path, one.file.size_bytes))
    visit.tell(Harm.DAMAGED, breach.kind, one.file.path, breach.detail, _REMEDIES.get(breach.kind, _REWRITE))


def _tell_breach(visit: Visit, one: ExaminedFile, breach: Breach) -> None:
    if breach.kind == "hidden_nan":
        visit.tell(Harm.NOTABLE, breach.kind, one.file.path, breach.detail, _ANEW)
    else:
        _tell_damage(visit, one, breach)


def _whose(one: ExaminedFile) -> str:
    file = one.file
    if file.added_snapshot is None:
        return "; a staged commit names it"
    until = "on" if file.removed_snapshot is None else f"to {file.removed_snapshot - 1}"
    return f"; {file.row_count:,} rows of the snapshots from {file.added_snapshot} {until}"


class _Promises:
    """What the catalog promises of files: their schema versions are loaded when they are first met."""

    def __init__(self, visit: Visit) -> None:
        self._catalog = visit.runtime.catalog
        self._table: TableInfo = tables.load_table(
            self._catalog, TableRef(id=visit.table.id, full_name=visit.table.name)
        )
        self._schemas: dict[int, TableSchema] = {}

    def of(self, one: ExaminedFile) -> Promise:
        schema = self._schema(one.file.schema_id).in_files
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


def check_file(storage: Storage, promise: Promise, *, deep: bool) -> tuple[Breach, ...]:
    """What is wrong with a file of the table that the storage is of. A deep look reads every page and compares its
    checksum. Memory does not grow with the file.

    Raises RetryableError if the store is out of reach.
    """
    file = promise.file
    try:
        with open_anew(storage, file.path, file.size_bytes) as reader:
            missing = [column.name for column in promise.columns if column.name not in reader.schema.names]
            if missing:
                return (Breach(kind="missing_column", detail=f"it has no column {missing[0]!r}"),)
            if reader.row_count != file.row_count:
                detail = f"it has {reader.row_count:,} rows, and the catalog knows {file.row_count:,}"
                return (Breach(kind="wrong_rows", detail=detail),)
            hidden = (_HIDDEN_NAN,) if reader.hides_nan and file.removed_snapshot is None else ()
            if not deep:
                return hidden
            verifier = Verifier(promise)
            for row_group in range(reader.row_group_count):
                for rows in reader.read_in_steps(row_group, reader.schema.names, _STEP_ROWS):
                    verifier.look(rows)
            return (*hidden, *verifier.finish())
    except CorruptionError as error:
        return (Breach(kind=error.kind, detail=error.message),)
