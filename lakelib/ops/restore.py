"""Use case: a lake comes back from a backup, beside its original.

Step by step: the database has to be empty, and so has the warehouse if the files are to be its own; the files are
copied; the catalog is read, and becomes one that clients open in a single transaction, in which it lets go of all that
is the original's. Killed before that it is cleared away by the next try. Then the lake is examined.

With files a restored lake is another lake than its original, in a warehouse of its own. Without, it reads the files of
the original and refuses every change until somebody adopts it.
"""

import hashlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from lakelib.catalog import dump
from lakelib.catalog.connect import Catalog
from lakelib.catalog.dump import RestoredTable
from lakelib.errors import CorruptionError, InvalidInputError
from lakelib.model.backup import BackedTable, BackupNote
from lakelib.model.doctor import DEFAULT_DOCTOR_GRACE, DoctorReport, Finding, Harm
from lakelib.ops import doctor
from lakelib.ops.backup import DUMP_FILE, data_path, listed_files, load_note
from lakelib.ops.runtime import Runtime
from lakelib.storage.filesystem import Storage
from lakelib.storage.local_files import copy_file, read_to_disk
from lakelib.storage.paths import is_own_file, join_uri

_COPIED_AT_ONCE = 500
_NOT_RESTORED = "not-restored"


def restore(catalog: Catalog, source: Storage, warehouse: Storage, *, threads: int) -> BackupNote:
    """The database has the backup's catalog, and the warehouse its files, if the backup has files. Raises
    InvalidInputError for a database or a warehouse that is in use."""
    note = load_note(source)
    _check_warehouse(note, warehouse)
    dump.check_target(catalog, note.server_version, note.migrations)
    if note.with_files:
        _copy_files(note, source, warehouse, threads)
    try:
        with tempfile.TemporaryDirectory(prefix="lakelib-restore-") as folder:
            path = Path(folder) / DUMP_FILE
            read_to_disk(source, DUMP_FILE, path)
            _check_dump(note, source, path)
            dump.read_dump(catalog, path)
        dump.settle(
            catalog,
            [_restored(note, table, warehouse.uri) for table in note.tables],
            note.migrations,
            nowhere=join_uri(warehouse.uri, _NOT_RESTORED),
            has_files=note.with_files,
        )
    except BaseException:
        dump.clear(catalog)
        raise
    return note


def examine(runtime: Runtime, note: BackupNote) -> DoctorReport:
    """A doctor's report of a restored lake; tables that do not hold what the backup says are findings too."""
    found = dump.count_heads(runtime.catalog)
    differing = [_difference(table, found.get(table.name)) for table in note.tables]
    return doctor.examine(
        runtime,
        [table.name for table in note.tables],
        deep=False,
        repair=(),
        backup=None,
        dry_run=True,
        grace=DEFAULT_DOCTOR_GRACE,
        more=[finding for finding in differing if finding is not None],
        is_borrowed=not note.with_files,
    )


def _difference(table: BackedTable, found: tuple[int, int, int] | None) -> Finding | None:
    expected = (table.head_id, table.files, table.stored_rows)
    if found == expected:
        return None
    return Finding(
        severity=Harm.DAMAGED,
        kind="not_restored",
        table=table.name,
        place=f"snapshot {table.head_id}",
        detail=f"head, files and rows were {expected} in the backup, and are {found}",
        remedy="Restore again, into another database.",
    )


def _check_warehouse(note: BackupNote, warehouse: Storage) -> None:
    if not note.with_files:
        return
    ours, theirs = f"{warehouse.uri.rstrip('/')}/", f"{note.warehouse.rstrip('/')}/"
    if ours.startswith(theirs) or theirs.startswith(ours):
        raise InvalidInputError(
            f"The backup is of the warehouse {note.warehouse}, and {warehouse.uri} is not beside it.",
            kind="invalid_location",
            remedy="Name a warehouse of its own for the restored lake (--warehouse).",
        )
    folders = {table.folder for table in note.tables}
    for entry in warehouse.list_files():
        if is_own_file(entry.path) and not any(entry.path.startswith(f"{folder}/") for folder in folders):
            raise InvalidInputError(
                f"The warehouse {warehouse.uri} holds files of a lake: {entry.path}.",
                kind="warehouse_not_empty",
                remedy="Name an empty folder for the restored lake.",
            )


def _check_dump(note: BackupNote, source: Storage, path: Path) -> None:
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != note.dump_sha256:
        raise CorruptionError(
            f"The dump {source.uri_of(DUMP_FILE)} is not the one that the backup was made with.",
            kind="unreadable_backup",
            remedy="Take another backup, or another copy of this one.",
        )


def _copy_files(note: BackupNote, source: Storage, warehouse: Storage, threads: int) -> None:
    by_id = {table.id: table for table in note.tables}
    with (
        ThreadPoolExecutor(threads, thread_name_prefix="lakelib-restore") as pool,
        listed_files(source) as files,
    ):
        while some := list(islice(files, _COPIED_AT_ONCE)):
            copied = pool.map(
                lambda file: copy_file(
                    source,
                    data_path(by_id[file.table_id], file.path),
                    warehouse,
                    f"{by_id[file.table_id].folder}/{file.path}",
                    file.size_bytes,
                ),
                some,
            )
            list(copied)


def _restored(note: BackupNote, table: BackedTable, warehouse: str) -> RestoredTable:
    """With files its folder is below the new warehouse. Without, it is where the original's is, below whatever
    warehouse was named in place of that one's."""
    if note.with_files:
        return RestoredTable(id=table.id, location=join_uri(warehouse, table.folder))
    root = f"{note.warehouse.rstrip('/')}/"
    if not table.location.startswith(root):
        return RestoredTable(id=table.id, location=table.location)
    return RestoredTable(id=table.id, location=join_uri(warehouse, table.location.removeprefix(root)))
