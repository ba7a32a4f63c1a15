"""Use case: a lake is backed up, beside its readers and writers.

Step by step: one moment of the catalog is taken, and every snapshot that can be read then is held, so that no vacuum
deletes its files; the catalog is dumped as it was at that moment, and the files that it needs are listed; either they
are copied, or they stay held for a given time. The backup's note of itself comes last: without it there is no backup.

What is staged and not published is in no backup.
"""

import gzip
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from uuid import uuid4

from lakelib.catalog import dump, tables
from lakelib.catalog.dump import HeldTable, Moment
from lakelib.errors import CorruptionError, InvalidInputError, LeaseLostError, NotFoundError
from lakelib.model.backup import BackedTable, BackupNote, BackupResult, NeededFile, note_from_json, note_to_json
from lakelib.ops.create import split_name
from lakelib.ops.expire import check_length
from lakelib.ops.runtime import Runtime
from lakelib.storage.filesystem import Storage
from lakelib.storage.local_files import copy_file, read_to_disk, write_from_disk

NOTE_FILE = "backup.json"
DUMP_FILE = "catalog.dump"
LIST_FILE = "files.jsonl.gz"
DATA_FOLDER = "data"
_WHILE_COPYING = timedelta(hours=6)
_RENEWED_EVERY_SECONDS = 1800.0
_COPIED_AT_ONCE = 500


def back_up(
    runtime: Runtime, target: Storage, names: Sequence[str] | None, *, with_files: bool, hold_for: timedelta
) -> BackupResult:
    """A backup of all tables, or of those named, in the folder `target`. Safe to repeat after a failure.

    Without files the original keeps them for so long: until then a restored lake can read them, or others copy them.
    Raises NotFoundError for a table that is not there, InvalidInputError for a target that cannot be one.
    """
    began = time.monotonic()
    check_length("hold_for", hold_for)
    if not isinstance(with_files, bool):
        raise InvalidInputError(f"with_files is {with_files!r}.", kind="invalid_backup", remedy="Give True or False.")
    for name in names or ():
        split_name(name)
    _check_target(runtime, target)
    backup_id = uuid4().hex
    holder = f"backup {backup_id}"
    try:
        note = _take(runtime, target, names, backup_id, holder, hold_for, with_files=with_files)
        target.write_bytes(NOTE_FILE, json.dumps(note_to_json(note), indent=2).encode())
    except BaseException:
        dump.release(runtime.catalog, holder)
        raise
    if with_files:
        dump.release(runtime.catalog, holder)
    return BackupResult(
        id=note.id,
        destination=target.uri,
        made_at=note.made_at,
        with_files=with_files,
        held_until=note.held_until,
        tables=tuple(table.name for table in note.tables),
        files=note.files,
        size_bytes=note.size_bytes,
        dump_bytes=note.dump_bytes,
        seconds=time.monotonic() - began,
    )


def release(runtime: Runtime, backup_id: str) -> None:
    """The original no longer keeps the files of a backup without files. Safe to repeat."""
    dump.release(runtime.catalog, f"backup {backup_id}")


def load_note(source: Storage) -> BackupNote:
    """What a backup says of itself. Raises NotFoundError where there is none, CorruptionError for one that makes no
    sense."""
    try:
        return note_from_json(json.loads(source.read_bytes(NOTE_FILE)))
    except NotFoundError as error:
        raise NotFoundError(
            f"There is no backup in {source.uri}: it has no {NOTE_FILE}, or it was not finished.",
            kind="backup_not_found",
            remedy="Name the folder that `lake backup` was given.",
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptionError(
            f"The note {source.uri_of(NOTE_FILE)} cannot be read: {error}.",
            kind="unreadable_backup",
            remedy="Take another backup.",
        ) from error


@contextmanager
def listed_files(source: Storage) -> Iterator[Iterator[NeededFile]]:
    """The files that a backup needs, as they come."""
    with tempfile.TemporaryDirectory(prefix="lakelib-restore-") as folder:
        path = Path(folder) / LIST_FILE
        read_to_disk(source, LIST_FILE, path)
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield (NeededFile(**json.loads(line)) for line in lines)


def data_path(table: BackedTable, path: str) -> str:
    """Where a file is in a backup with files."""
    return f"{DATA_FOLDER}/{table.folder}/{path}"


def bring_back(
    storage: Storage, source: Storage, damaged: Sequence[tuple[str, str, str, int]], *, dry_run: bool
) -> Iterator[tuple[str, str]]:
    """Of damaged files (table, location, path, size) those that the backup has are copied to where they were. Gives the
    tables and URIs of those that were, or would be."""
    note = load_note(source)
    if not note.with_files:
        raise InvalidInputError(
            f"The backup in {source.uri} is one without files.", kind="invalid_repair", remedy="Name one with files."
        )
    by_place = {table.name: table for table in note.tables}
    for name, location, path, size_bytes in damaged:
        table = by_place.get(name)
        if table is None or not source.exists(data_path(table, path)):
            continue
        place = storage.at(location)
        if not dry_run:
            copy_file(source, data_path(table, path), place, path, size_bytes)
        yield name, place.uri_of(path)


def _take(
    runtime: Runtime,
    target: Storage,
    names: Sequence[str] | None,
    backup_id: str,
    holder: str,
    hold_for: timedelta,
    *,
    with_files: bool,
) -> BackupNote:
    with tempfile.TemporaryDirectory(prefix="lakelib-backup-") as folder:
        disk = Path(folder)
        with dump.held_moment(runtime.catalog, names, holder, _WHILE_COPYING) as moment:
            _check_names(moment, names)
            dump.write_dump(moment, disk / DUMP_FILE)
            files, size_bytes = _write_list(moment, disk / LIST_FILE)
        note = _note(runtime, moment, backup_id, disk / DUMP_FILE, files, size_bytes, with_files=with_files)
        for name in (DUMP_FILE, LIST_FILE):
            write_from_disk(disk / name, target, name)
    if with_files:
        _copy_files(runtime, target, note, holder)
        return note
    held_until = dump.renew(runtime.catalog, holder, hold_for)
    return replace(note, held_until=held_until or moment.now + hold_for)


def _note(
    runtime: Runtime,
    moment: Moment,
    backup_id: str,
    dumped: Path,
    files: int,
    size_bytes: int,
    *,
    with_files: bool,
) -> BackupNote:
    with dumped.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return BackupNote(
        id=backup_id,
        made_at=moment.now,
        warehouse=runtime.warehouse,
        server_version=moment.server_version,
        with_files=with_files,
        held_until=None,
        tables=tuple(_backed(runtime, table) for table in moment.tables),
        migrations=moment.migrations,
        files=files,
        size_bytes=size_bytes,
        dump_bytes=dumped.stat().st_size,
        dump_sha256=digest,
    )


def _backed(runtime: Runtime, table: HeldTable) -> BackedTable:
    namespace, _, name = table.name.partition(".")
    return BackedTable(
        id=table.id,
        name=table.name,
        location=runtime.storage.at(table.location).uri,
        folder=f"{namespace}/{name}-{table.id}",
        head_id=table.head_id,
        files=table.files,
        stored_rows=table.stored_rows,
    )


def _check_target(runtime: Runtime, target: Storage) -> None:
    if _is_below(target.uri, runtime.warehouse):
        raise InvalidInputError(
            f"The backup {target.uri} would be in the warehouse {runtime.warehouse}.",
            kind="invalid_location",
            remedy="Name a folder elsewhere, best in another store.",
        )
    if target.exists(NOTE_FILE):
        raise InvalidInputError(
            f"There is a backup in {target.uri}.", kind="backup_exists", remedy="Name another folder: each has its own."
        )


def _is_below(uri: str, root: str) -> bool:
    return f"{uri.rstrip('/')}/".startswith(f"{root.rstrip('/')}/")


def _check_names(moment: Moment, names: Sequence[str] | None) -> None:
    for name in names or ():
        if name not in {table.name for table in moment.tables}:
            raise tables.table_missing(name, [table.name for table in moment.tables])


def _write_list(moment: Moment, path: Path) -> tuple[int, int]:
    """How many files there are, and their size."""
    files = size_bytes = 0
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as lines:
        for file in moment.stream_files():
            lines.write(json.dumps(asdict(file), ensure_ascii=False) + "\n")
            files += 1
            size_bytes += file.size_bytes
    return files, size_bytes


def _copy_files(runtime: Runtime, target: Storage, note: BackupNote, holder: str) -> None:
    """The holds last as long as the copying does."""
    by_id = {table.id: table for table in note.tables}
    renewed = time.monotonic()

    def copy(file: NeededFile) -> None:
        table = by_id[file.table_id]
        source = runtime.storage.at(table.location)
        copy_file(source, file.path, target, data_path(table, file.path), file.size_bytes)

    with (
        ThreadPoolExecutor(runtime.read_threads, thread_name_prefix="lakelib-backup") as pool,
        listed_files(target) as files,
    ):
        while some := list(islice(files, _COPIED_AT_ONCE)):
            list(pool.map(copy, some))
            if time.monotonic() - renewed > _RENEWED_EVERY_SECONDS:
                _renew(runtime, holder)
                renewed = time.monotonic()


def _renew(runtime: Runtime, holder: str) -> None:
    if dump.renew(runtime.catalog, holder, _WHILE_COPYING) is None:
        raise LeaseLostError(
            "The holds on the snapshots that are being copied were lost.",
            remedy="Make the backup again.",
        )
