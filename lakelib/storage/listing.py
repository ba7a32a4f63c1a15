"""Storage. What pyarrow.fs lacks or does in one gulp: listing page by page, deleting in batches, aborting uploads.

Names are those of the store itself: absolute paths locally, keys of one bucket on S3.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from pyarrow import fs

from lakelib.storage.paths import OWN_CATALOG

DELETE_BATCH = 1000
"""The most keys that S3 deletes in one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    path: str
    """Relative to the root of the storage that was asked."""
    size_bytes: int
    modified_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDelete:
    path: str
    """As it was given."""
    reason: str


def list_local(folder: str) -> Iterator[FileEntry]:
    """Every file below a folder, by absolute path; nothing if there is none. A lake's own catalog is left out, and what
    vanishes meanwhile."""
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.name == OWN_CATALOG:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        yield from _local_entry(entry)
        except (FileNotFoundError, NotADirectoryError):
            continue


def _local_entry(entry: os.DirEntry[str]) -> Iterator[FileEntry]:
    try:
        status = entry.stat()
    except FileNotFoundError:
        return
    modified_at = datetime.fromtimestamp(status.st_mtime, UTC)
    yield FileEntry(path=entry.path, size_bytes=status.st_size, modified_at=modified_at)


def list_arrow(filesystem: fs.FileSystem, folder: str) -> Iterator[FileEntry]:
    """Every file below a folder of a store that only pyarrow reaches, one folder in memory at a time."""
    pending = [folder]
    while pending:
        selector = fs.FileSelector(pending.pop(), recursive=False, allow_not_found=True)
        for info in filesystem.get_file_info(selector):
            if info.type == fs.FileType.Directory:
                pending.append(info.path)
            elif info.type == fs.FileType.File:
                modified_at = info.mtime.astimezone(UTC) if info.mtime else datetime.now(UTC)
                yield FileEntry(path=info.path, size_bytes=info.size, modified_at=modified_at)


def list_s3(client: Any, bucket: str, prefix: str) -> Iterator[FileEntry]:
    """Every object whose key begins with the prefix, by key, a page of the service at a time."""
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", ()):
            if not found["Key"].endswith("/"):  # an empty object that other tools make to stand for a folder
                yield FileEntry(
                    path=found["Key"], size_bytes=found["Size"], modified_at=found["LastModified"].astimezone(UTC)
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
