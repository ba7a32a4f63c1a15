"""Storage. Files of one warehouse or table: on local disks, S3, HDFS or Google Cloud Storage.

Paths are relative to a storage's root, or complete URIs of the same store; they are taken literally. Folders come into
being when a file is written. Every method raises lakelib's errors (see `storage.failures`).
"""

import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime
from functools import cache, lru_cache
from itertools import islice
from typing import Protocol

import pyarrow as pa
from pyarrow import fs

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.settings import StorageSettings
from lakelib.storage.failures import STORE_FAILURES, missing_file, translate, translated
from lakelib.storage.listing import (
    DELETE_BATCH,
    FailedDelete,
    FileEntry,
    arrow_entry,
    list_arrow,
    list_local,
    local_entry,
)
from lakelib.storage.paths import complete_uri, join_uri, split_uri
from lakelib.storage.s3 import S3Store, put_one_by_one

_SYNCED_AT_ONCE = 16
_WRITE_BYTES = 64 * 1024
"""What a local file is written in, at least: Parquet hands on each header and page for itself."""


def open_storage(location_root: str, settings: StorageSettings) -> "Storage":
    """The storage below a URI or path. Nothing is contacted yet. Raises InvalidInputError on an unknown scheme."""
    return Storage(complete_uri(location_root, settings.default_fs), settings)


@dataclass(frozen=True, slots=True)
class Storage:
    """A root and how to reach it: a value that may be pickled, compared and shared by threads.

    Connections belong to the process: they are made at first use and shared by all storages of one store.
    """

    uri: str
    settings: StorageSettings
    home: str | None = None
    """What the catalog calls this root, if that has moved since: locations below it are below the root."""
    is_local: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_local", self.uri.startswith("file:"))

    def at(self, location: str) -> "Storage":
        """The storage below a location that the catalog gives, which may be in another store."""
        place = self.place_of(location)
        return self if place == self.uri else open_storage(place, self.settings)

    def place_of(self, location: str) -> str:
        """Where a location that the catalog gives is now, as a complete URI."""
        if self.home is not None and location.startswith(_folder(self.home)):
            return _folder(self.uri) + location.removeprefix(_folder(self.home))
        return location

    def location_of(self, path: str) -> str:
        """What the catalog calls a folder below the root."""
        return _folder(self.home or self.uri) + path

    def holds(self, location: str) -> bool:
        """Whether a location that the catalog gives is below the root."""
        return self.place_of(location).startswith(_folder(self.uri))

    def uri_of(self, path: str) -> str:
        """The complete URI of a path."""
        return path if "://" in path else join_uri(self.uri, path)

    def open_output(self, path: str) -> pa.NativeFile:
        """A stream that makes the file, or replaces it. Buffers are bounded: a slow store slows the writer down."""
        uri, store, name = self._find(path)
        try:
            return store.open_output(name)
        except STORE_FAILURES as error:
            raise translate(error, uri) from error

    def open_input(self, path: str, *, named_by_catalog: bool = False) -> pa.NativeFile:
        """The file for random access. Raises NotFoundError, or CorruptionError if the catalog names the file."""
        uri, store, name = self._find(path)
        with translated(uri, named_by_catalog=named_by_catalog):
            return store.filesystem.open_input_file(name)

    def write_bytes(self, path: str, content: bytes) -> None:
        """Writes a whole small file and makes it durable."""
        with translated(self.uri_of(path)), self.open_output(path) as stream:
            stream.write(content)
        self.make_durable(path)

    def create_bytes(self, path: str, content: bytes) -> bool:
        """Writes a whole small file durably unless there is one of that name. False if there certainly was one. Stores
        that cannot tell may replace it: whoever needs to know reads it afterwards."""
        uri, store, name = self._find(path)
        with translated(uri):
            return store.put(name, content, only_new=True)

    def create_in_order(self, files: Sequence[tuple[str, bytes]]) -> int:
        """As `create_bytes`, of whole small files by path: none is there before the one before it. How many were
        written: it stops at the first whose name is taken."""
        named = [(self._find(path)[2], content) for path, content in files]
        with translated(self.uri):
            return self._store().put_in_order(named)

    def replace_bytes(self, path: str, content: bytes) -> None:
        """Writes a whole small file durably: a reader finds the one before or this one, never a part."""
        uri, store, name = self._find(path)
        with translated(uri):
            store.put(name, content, only_new=False)

    def read_bytes(self, path: str) -> bytes:
        with translated(self.uri_of(path)), self.open_input(path) as stream:
            content: bytes = stream.read()
        return content

    def exists(self, path: str) -> bool:
        """Whether there is such a file (a folder is none)."""
        uri, store, name = self._find(path)
        with translated(uri):
            found: bool = store.filesystem.get_file_info(name).type == fs.FileType.File
        return found

    def size(self, path: str, *, named_by_catalog: bool = False) -> int:
        uri, store, name = self._find(path)
        with translated(uri, named_by_catalog=named_by_catalog):
            info = store.filesystem.get_file_info(name)
        if info.type != fs.FileType.File:
            raise missing_file(uri, named_by_catalog=named_by_catalog)
        size_bytes: int = info.size
        return size_bytes

    def find_file(self, path: str) -> FileEntry | None:
        """What the store tells of a file; None if there is none (a folder is none)."""
        uri, store, name = self._find(path)
        with translated(uri):
            found = store.find_file(name)
        return None if found is None else replace(found, path=path)

    def list_files(self, prefix: str = "", *, follow_links: bool = False) -> Iterator[FileEntry]:
        """Every file below a folder ('' is the root), in no order, page by page. Nothing if there is no such folder.
        With `follow_links` linked folders are looked into, and links that lead nowhere or in circles are errors."""
        uri, store, name = self._find(prefix)
        root = self._find("")[2].rstrip("/") + "/"
        with translated(uri):
            for entry in store.list_files(name, follow_links=follow_links):
                yield replace(entry, path=entry.path.removeprefix(root))

    def delete_files(self, paths: Iterable[str]) -> tuple[FailedDelete, ...]:
        """Deletes files and returns those that could not be. Missing files are fine."""
        remaining = iter(paths)
        failed: list[FailedDelete] = []
        while batch := list(islice(remaining, DELETE_BATCH)):
            given = {self._find(path)[2]: path for path in batch}
            with translated(self.uri):
                refused = self._store().delete_files(given)
                failed.extend(FailedDelete(path=given[one.path], reason=one.reason) for one in refused)
        return tuple(failed)

    def abort_uploads(self, prefix: str, older_than: datetime, *, dry_run: bool = False) -> int:
        """Aborts uploads below a folder that began before a time and were never finished; returns how many. A dry run
        only counts them."""
        uri, store, name = self._find(prefix)
        with translated(uri):
            return store.abort_uploads(name, older_than, dry_run=dry_run)

    def clock(self) -> datetime | None:
        """The store's clock, to the second; None where it does not tell."""
        with translated(self.uri):
            return self._store().clock()

    def make_durable(self, path: str) -> None:
        """Returns when a closed file outlives a power cut. Object stores promise that at close."""
        uri, store, name = self._find(path)
        try:
            store.make_durable(name)
        except STORE_FAILURES as error:
            raise translate(error, uri) from error

    def _store(self) -> "_Store":
        return _open_local() if self.is_local else _open_store(*_store_of(self.uri), self.settings, os.getpid())

    def _find(self, path: str) -> "tuple[str, _Store, str]":
        """A path's complete URI, its store, and its name there."""
        uri = self.uri_of(path)
        scheme, authority = _store_of(self.uri)
        inside = uri.removeprefix(f"{scheme}://{authority}")
        if inside == uri or not f"{inside}/".startswith("/") or "/../" in f"{inside}/":
            raise InvalidInputError(
                f"The file {uri} is not in the store of {self.uri}.",
                kind="invalid_location",
                remedy="Name a file below it, or open the storage of the other location.",
            )
        name = authority + inside if scheme in ("s3", "gs") else inside
        return uri, self._store(), name


@lru_cache(maxsize=64)
def _store_of(uri: str) -> tuple[str, str]:
    """Scheme and authority of a root."""
    return split_uri(uri)[:2]


def _folder(uri: str) -> str:
    return uri.rstrip("/") + "/"


class _Store(Protocol):
    """A store as a process reaches it. Names are those of its pyarrow file system."""

    filesystem: fs.FileSystem

    def clock(self) -> datetime | None: ...
    def open_output(self, name: str) -> pa.NativeFile: ...
    def list_files(self, folder: str, *, follow_links: bool) -> Iterator[FileEntry]: ...
    def find_file(self, name: str) -> FileEntry | None: ...
    def delete_files(self, names: Iterable[str]) -> Iterator[FailedDelete]: ...
    def abort_uploads(self, folder: str, older_than: datetime, *, dry_run: bool) -> int: ...
    def make_durable(self, name: str) -> None: ...
    def put(self, name: str, content: bytes, *, only_new: bool) -> bool: ...
    def put_in_order(self, files: Sequence[tuple[str, bytes]]) -> int: ...


@cache
def _open_local() -> _Store:
    """There are no settings to reach it by, and no connections."""
    return _LocalStore()


@lru_cache(maxsize=64)
def _open_store(scheme: str, authority: str, settings: StorageSettings, process_id: int) -> _Store:
    """`process_id` keeps a forked process from using its parent's connections."""
    with translated(f"{scheme}://{authority}"):
        return S3Store(authority, settings) if scheme == "s3" else _ArrowStore(scheme, authority)


class _LocalStore:
    def __init__(self) -> None:
        self.filesystem: fs.FileSystem = fs.LocalFileSystem()

    def clock(self) -> datetime | None:
        return None

    def open_output(self, name: str) -> pa.NativeFile:
        try:
            return self._open_new(name)
        except FileNotFoundError:
            _make_durable_folders(os.path.dirname(name))
            return self._open_new(name)

    def _open_new(self, name: str) -> pa.NativeFile:
        return self.filesystem.open_output_stream(name, compression=None, buffer_size=_WRITE_BYTES)

    def list_files(self, folder: str, *, follow_links: bool) -> Iterator[FileEntry]:
        return list_local(folder, follow_links=follow_links)

    def find_file(self, name: str) -> FileEntry | None:
        with suppress(FileNotFoundError, NotADirectoryError):
            status = os.stat(name)
            return local_entry(name, status) if stat.S_ISREG(status.st_mode) else None
        return None

    def delete_files(self, names: Iterable[str]) -> Iterator[FailedDelete]:
        for name in names:
            try:
                with suppress(FileNotFoundError):
                    os.remove(name)
            except OSError as error:
                yield FailedDelete(path=name, reason=str(error.strerror))

    def abort_uploads(self, folder: str, older_than: datetime, *, dry_run: bool) -> int:
        return 0

    def make_durable(self, name: str) -> None:
        _sync(name)
        _sync(os.path.dirname(name))

    def put(self, name: str, content: bytes, *, only_new: bool) -> bool:
        _make_durable_folders(os.path.dirname(name))
        draft = f"{name}.{secrets.token_hex(8)}"
        is_made: bool | None = None
        try:
            with open(draft, "xb") as file:
                file.write(content)
            _sync(draft)
            if only_new:
                is_made = _link_new(draft, name)
            if is_made is None:
                os.replace(draft, name)
        finally:
            with suppress(FileNotFoundError):
                os.remove(draft)
        _sync(os.path.dirname(name))
        return is_made is not False

    def put_in_order(self, files: Sequence[tuple[str, bytes]]) -> int:
        """Drafts are made durable beside each other: nearly all of it is waiting."""
        drafts = [(f"{name}.{secrets.token_hex(8)}", name, content) for name, content in files]
        for folder in {os.path.dirname(name) for name, _ in files}:
            _make_durable_folders(folder)
        count = 0
        try:
            with ThreadPoolExecutor(_SYNCED_AT_ONCE, thread_name_prefix="lakelib-sync") as pool:
                list(pool.map(_write_draft, drafts))
            for draft, name, _ in drafts:
                is_made = _link_new(draft, name)
                if is_made is None:
                    os.replace(draft, name)
                if is_made is False:
                    break
                count += 1
        finally:
            for draft, _, _ in drafts:
                with suppress(FileNotFoundError):
                    os.remove(draft)
        for folder in {os.path.dirname(name) for name, _ in files}:
            _sync(folder)
        return count


def _write_draft(draft: tuple[str, str, bytes]) -> None:
    with open(draft[0], "xb") as file:
        file.write(draft[2])
        file.flush()
        os.fsync(file.fileno())


def _make_durable_folders(folder: str) -> None:
    """Makes a folder and those above it, each synchronised into its parent: a file is lost with its folder."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for new in reversed(missing):
        os.makedirs(new, exist_ok=True)
        _sync(os.path.dirname(new))


def _link_new(draft: str, name: str) -> bool | None:
    """Gives a file a second name. False if that is taken; None if it is free, and the file system knows no links."""
    try:
        os.link(draft, name)
    except FileExistsError:
        return False
    except OSError:
        return False if os.path.exists(name) else None
    return True


def _sync(name: str) -> None:
    descriptor = os.open(name, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _ArrowStore:
    """HDFS and Google Cloud Storage: what pyarrow offers and no more."""

    def __init__(self, scheme: str, authority: str) -> None:
        self.filesystem, _ = fs.FileSystem.from_uri(f"{scheme}://{authority}/")

    def clock(self) -> datetime | None:
        return None

    def open_output(self, name: str) -> pa.NativeFile:
        self.filesystem.create_dir(name.rpartition("/")[0], recursive=True)
        return self.filesystem.open_output_stream(name, compression=None)

    def list_files(self, folder: str, *, follow_links: bool) -> Iterator[FileEntry]:
        return list_arrow(self.filesystem, folder)

    def find_file(self, name: str) -> FileEntry | None:
        info = self.filesystem.get_file_info(name)
        return arrow_entry(info) if info.type == fs.FileType.File else None

    def delete_files(self, names: Iterable[str]) -> Iterator[FailedDelete]:
        for name in names:
            try:
                with suppress(FileNotFoundError):
                    self.filesystem.delete_file(name)
            except OSError as error:
                yield FailedDelete(path=name, reason=str(translate(error, name)))

    def abort_uploads(self, folder: str, older_than: datetime, *, dry_run: bool) -> int:
        return 0

    def make_durable(self, name: str) -> None:
        """A closed file is durable there."""

    def put(self, name: str, content: bytes, *, only_new: bool) -> bool:
        if only_new and self.filesystem.get_file_info(name).type == fs.FileType.File:
            return False
        with self.open_output(name) as stream:
            stream.write(content)
        return True

    def put_in_order(self, files: Sequence[tuple[str, bytes]]) -> int:
        return put_one_by_one(self, files)
