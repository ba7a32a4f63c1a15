"""Storage. What pyarrow.fs lacks or does in one gulp: listing page by page, deleting in batches, aborting uploads.

Names are those of the store itself: absolute paths locally, keys of one bucket on S3.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from pyarrow import fs

from lakelib.dataclass import dataclass
from lakelib.storage.paths import OWN_CATALOG

DELETE_BATCH = 1000
"""The most keys that S3 deletes in one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    path: str
    """Relative to the root of the storage that was asked."""
    size_bytes: int
    modified_at: datetime
    version: str
    """Another one after the file was written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDelete:
    path: str
    """As it was given."""
    reason: str


def list_local(folder: str, *, follow_links: bool = False) -> Iterator[FileEntry]:
    """Every file below a folder, by absolute path; nothing if there is none. A lake's own catalog is left out, and what
    vanishes meanwhile. If links are followed, linked folders are looked into, and a link that leads nowhere, or to a
    folder above, is an OSError; else a link is a file."""
    pending: list[tuple[str, tuple[str, ...]]] = [(folder, ())]
    while pending:
        inside, above = pending.pop()
        try:
            here = _entered(inside, above) if follow_links else above
            with os.scandir(inside) as entries:
                for entry in entries:
                    if entry.name == OWN_CATALOG:
                        continue
                    if entry.is_dir(follow_symlinks=follow_links):
                        pending.append((entry.path, here))
                    else:
                        yield from _local_entry(entry, follow_links)
        except (FileNotFoundError, NotADirectoryError) as error:
            if isinstance(error, DanglingLinkError):
                raise
            continue


class DanglingLinkError(FileNotFoundError):
    """A link whose file or folder is not there."""


def _entered(folder: str, above: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that one is in then, by their true names."""
    true = os.path.realpath(folder)
    if true in above:
        raise OSError(errno.ELOOP, f"the link leads to a folder that it is in, {true}", folder)
    return (*above, true)


def _local_entry(entry: os.DirEntry[str], follow_links: bool) -> Iterator[FileEntry]:
    try:
        status = entry.stat()
    except FileNotFoundError:
        if follow_links and entry.is_symlink():
            raise DanglingLinkError(errno.ENOENT, "the link leads nowhere", entry.path) from None
        return
    yield local_entry(entry.path, status)


def local_entry(path: str, status: os.stat_result) -> FileEntry:
    """Which number a file has differs between machines that share it: its version does without."""
    return FileEntry(
        path=path,
        size_bytes=status.st_size,
        modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
        version=f"{status.st_size} {status.st_mtime_ns}",
    )


def list_arrow(filesystem: fs.FileSystem, folder: str) -> Iterator[FileEntry]:
    """Every file below a folder of a store that only pyarrow reaches, one folder in memory at a time."""
    pending = [folder]
    while pending:
        selector = fs.FileSelector(pending.pop(), recursive=False, allow_not_found=True)
        for info in filesystem.get_file_info(selector):
            if info.type == fs.FileType.Directory:
                pending.append(info.path)
            elif info.type == fs.FileType.File:
                yield arrow_entry(info)


def arrow_entry(info: fs.FileInfo) -> FileEntry:
    modified_at = info.mtime.astimezone(UTC) if info.mtime else datetime.now(UTC)
    return FileEntry(
        path=info.path, size_bytes=info.size, modified_at=modified_at, version=f"{info.size} {info.mtime_ns}"
    )


def list_s3(client: Any, bucket: str, prefix: str) -> Iterator[FileEntry]:
    """Every object whose key begins with the prefix, by key, a page of the service at a time."""
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", ()):
            if not found["Key"].endswith("/"):  # an empty object that other tools make to stand for a folder
                yield s3_entry(found["Key"], found["Size"], found)


def s3_entry(path: str, size_bytes: int, told: dict[str, Any]) -> FileEntry:
    """What a service tells of an object, in a listing or by itself."""
    return FileEntry(
        path=path,
        size_bytes=size_bytes,
        modified_at=told["LastModified"].astimezone(UTC),
        version=f"{size_bytes} {told.get('ETag', '').strip(chr(34))}",
    )


def delete_s3(client: Any, bucket: str, keys: Iterable[str]) -> Iterator[FailedDelete]:
    """Deletes objects, a thousand a request; yields what the service would not delete. Missing ones are fine."""
    remaining = iter(keys)
    while batch := list(islice(remaining, DELETE_BATCH)):
        reply = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in batch], "Quiet": True})
        for error in reply.get("Errors", ()):
            if error.get("Code") != "NoSuchKey":
                yield FailedDelete(path=error["Key"], reason=f"{error.get('Code')}: {error.get('Message')}")


def abort_s3_uploads(client: Any, bucket: str, prefix: str, older_than: datetime, *, dry_run: bool) -> int:
    """Aborts the multipart uploads that began before a time and were never finished; returns how many. A dry run only
    counts them."""
    found = 0
    for upload in _list_s3_uploads(client, bucket, prefix):
        if upload["Initiated"] < older_than:
            found += 1
            if not dry_run:
                with suppress(client.exceptions.NoSuchUpload):  # it has just been finished, or aborted by another
                    client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    return found


def _list_s3_uploads(client: Any, bucket: str, prefix: str) -> Iterator[dict[str, Any]]:
    with suppress(client.exceptions.NoSuchUpload):  # so some services say that there is none
        for page in client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix):
            yield from page.get("Uploads", ())
