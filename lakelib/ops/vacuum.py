"""Use case: files that nothing needs any more are deleted.

Step by step: the files of tables that were dropped long ago enter the queue; the files of the queue that are due are
deleted, and then leave it; files `_SUCCESS` that promise what is no more go; what lies under the tables' locations,
looks like a file of lakelib's, is old enough and is unknown to the catalog is deleted, and uploads that were never
finished are given up. Tables of other warehouses are passed over; before files are deleted, catalog and warehouse are
asked whether they belong together.

Listings come before questions: a file that was staged between the two is known. What a running writer has written and
not staged yet is protected by its age alone: a search for orphans is announced, and whoever wrote for longer than the
grace is refused when it stages. A table that others hold for longer than a moment is passed over.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice

from lakelib.catalog import retention
from lakelib.catalog.failures import CatalogBusyError
from lakelib.catalog.retention import DueFile, Place
from lakelib.catalog.roles import require_right
from lakelib.dataclass import dataclass
from lakelib.interop.delta.log import is_of_log
from lakelib.interop.success_file import FILE_NAME as SUCCESS_FILE
from lakelib.model.flags import checked_flags
from lakelib.model.roles import Right
from lakelib.model.upkeep import FailedFile, VacuumResult
from lakelib.ops import done_files
from lakelib.ops.expire import check_length
from lakelib.ops.runtime import Runtime
from lakelib.storage.paths import is_own_file, leads_back

_LARGEST_LAG = timedelta(minutes=5)
"""The storage's clock may be so far behind the catalog's (with a short grace, a tenth of it): its files look older than
they are."""
_ASKED_AT_ONCE = 1000
_SAMPLE_SIZE = 1000

Tell = Callable[[str], None]


@dataclass(slots=True)
class _Account:
    """What has been deleted so far."""

    dry_run: bool
    tell: Tell | None
    files: int = 0
    size_bytes: int = 0
    orphans: int = 0
    orphan_bytes: int = 0
    uploads: int = 0
    dropped_tables: list[str] = field(default_factory=list)
    failed: list[FailedFile] = field(default_factory=list)
    sample: list[str] = field(default_factory=list)
    passed_over: dict[int, str] = field(default_factory=dict)
    """Names of tables by id."""

    @contextmanager
    def unless_held(self, place: Place) -> Iterator[None]:
        """Passes the table over if others hold it."""
        try:
            yield
        except CatalogBusyError:
            self.passed_over[place.id] = place.name

    def delete_file(self, uri: str, size_bytes: int) -> None:
        self.files += 1
        self.size_bytes += size_bytes
        self._tell(uri)

    def delete_orphan(self, uri: str, size_bytes: int) -> None:
        self.orphans += 1
        self.orphan_bytes += size_bytes
        self._tell(uri)

    def _tell(self, uri: str) -> None:
        if len(self.sample) < _SAMPLE_SIZE:
            self.sample.append(uri)
        if self.tell is not None:
            self.tell(uri)


def vacuum(
    runtime: Runtime, *, dry_run: bool, grace: timedelta, orphans: bool, tell: Tell | None = None
) -> VacuumResult:
    """Beside readers and writers; safe to repeat, and to kill at any moment. `grace` is for dropped tables and for
    orphans: the queue has times of its own. `tell` hears the URI of each file that is (or would be) deleted."""
    check_length("grace", grace)
    dry_run, orphans = checked_flags(dry_run=dry_run, orphans=orphans)
    if not dry_run:
        require_right(runtime.catalog, Right.MAINTAIN)
    account = _Account(dry_run=dry_run, tell=tell)
    if not dry_run:
        runtime.ownership.confirm_now()
    now = retention.load_now(runtime.catalog)
    older_than = min(datetime.now(UTC), now) - grace  # one of them may run ahead
    refused_before = now - grace + min(_LARGEST_LAG, grace / 10)
    all_places = retention.load_places(runtime.catalog, older_than)
    places = [place for place in all_places if runtime.storage.holds(place.location)]
    for place in places:
        if place.is_due and not retention.is_read(runtime.catalog, place.id):
            with account.unless_held(place):
                _give_up(runtime, place, account)
    _delete_due(runtime, account)
    if not dry_run:
        runtime.ownership.confirm_now()
        done_files.sweep(runtime)
    for place in places if orphans else ():
        if place.id not in account.passed_over and (place.dropped_at is None or place.is_due):
            with account.unless_held(place):
                if not dry_run:
                    retention.announce_search(runtime.catalog, place.id, refused_before)
                _delete_orphans(runtime, place, older_than, account)
    return _result(runtime, account)


def _give_up(runtime: Runtime, place: Place, account: _Account) -> None:
    """The files of a dropped table are due now. A dry run only names them."""
    if not account.dry_run:
        if retention.retire_dropped(runtime.catalog, place.id):
            account.dropped_tables.append(place.name)
        return
    with retention.stream_files_of_table(runtime.catalog, place.id) as files:
        for number, (path, size_bytes) in enumerate(files):
            if number == 0:
                account.dropped_tables.append(place.name)
            account.delete_file(runtime.storage.at(place.location).uri_of(path), size_bytes)


def _delete_due(runtime: Runtime, account: _Account) -> None:
    """Deletes a file before its entry: if this ends in between, the next one finds nothing to delete, and goes on."""
    after_id = 0
    while due := retention.load_due_files(runtime.catalog, after_id):
        after_id = due[-1].id
        failed: set[int] = set()
        for location, files in groupby(sorted(due, key=lambda file: file.location), key=lambda file: file.location):
            failed |= _delete_files(runtime, location, list(files), account)
        if not account.dry_run:
            retention.forget_deleted(runtime.catalog, [file.id for file in due if file.id not in failed])


def _delete_files(runtime: Runtime, location: str, files: Sequence[DueFile], account: _Account) -> set[int]:
    """The ids of those that are still there: another warehouse's are left to those who connect with it."""
    if not runtime.storage.holds(location):
        return {file.id for file in files}
    refused = _delete(runtime, location, [file.path for file in files], account)
    for file in files:
        if file.path not in refused:
            account.delete_file(runtime.storage.at(location).uri_of(file.path), file.size_bytes)
    return {file.id for file in files if file.path in refused}


def _delete_orphans(runtime: Runtime, place: Place, older_than: datetime, account: _Account) -> None:
    storage = runtime.storage.at(place.location)
    own = (entry for entry in storage.list_files() if _is_own(entry.path, place))
    found = 0
    while listed := list(islice(own, _ASKED_AT_ONCE)):
        found += len(listed)
        entries = [entry for entry in listed if entry.modified_at < older_than]
        unknown = retention.find_unknown(runtime.catalog, place.id, [entry.path for entry in entries])
        orphans = [entry for entry in entries if entry.path in unknown]
        refused = _delete(runtime, place.location, [entry.path for entry in orphans], account)
        for entry in orphans:
            if entry.path not in refused:
                account.delete_orphan(storage.uri_of(entry.path), entry.size_bytes)
    if not account.dry_run:
        runtime.ownership.confirm_now()
    account.uploads += storage.abort_uploads("", older_than, dry_run=account.dry_run)
    if place.is_due and not found and not account.dry_run:
        retention.forget_dropped(runtime.catalog, place.id)


def _is_own(path: str, place: Place) -> bool:
    """Of a dropped table the notes of done partitions and the Delta log go as well."""
    is_note = place.dropped_at is not None and (path.rpartition("/")[2] == SUCCESS_FILE or is_of_log(path))
    return (is_own_file(path) or is_note) and leads_back(path)


def _delete(runtime: Runtime, location: str, paths: Sequence[str], account: _Account) -> set[str]:
    """Those that could not be deleted."""
    if account.dry_run or not paths:
        return set()
    runtime.ownership.confirm_now()
    storage = runtime.storage.at(location)
    failed = storage.delete_files(paths)
    account.failed += [FailedFile(uri=storage.uri_of(one.path), reason=one.reason) for one in failed]
    return {one.path for one in failed}


def _result(runtime: Runtime, account: _Account) -> VacuumResult:
    return VacuumResult(
        dry_run=account.dry_run,
        files=account.files,
        size_bytes=account.size_bytes,
        orphans=account.orphans,
        orphan_bytes=account.orphan_bytes,
        uploads=account.uploads,
        dropped_tables=tuple(account.dropped_tables),
        waiting=retention.count_waiting(runtime.catalog),
        failed=tuple(account.failed),
        sample=tuple(account.sample),
        passed_over=tuple(account.passed_over.values()),
    )
