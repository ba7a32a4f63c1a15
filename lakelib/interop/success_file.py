"""Interop. The file `_SUCCESS` in a partition's folder, which many schedulers wait for."""

import json
from contextlib import suppress
from datetime import datetime

from lakelib.errors import NotFoundError, RetryableError
from lakelib.storage.filesystem import Storage

FILE_NAME = "_SUCCESS"


def file_path(partition_path: str) -> str:
    """Its path, relative to the table's location."""
    return f"{partition_path}/{FILE_NAME}" if partition_path else FILE_NAME


def write_success_file(
    storage: Storage, location: str, partition_path: str, *, created_at: datetime, modified_at: datetime
) -> None:
    """The file is there with these times, in place of one that was there before, unless it is being deleted."""
    content = {"creationTime": _milliseconds(created_at), "modificationTime": _milliseconds(modified_at)}
    with suppress(NotFoundError):  # somebody has deleted it before it was made durable: it is theirs to look again
        storage.at(location).write_bytes(file_path(partition_path), json.dumps(content).encode())


def delete_success_file(storage: Storage, location: str, partition_path: str) -> None:
    """The file is gone. Raises RetryableError if the store would not delete it."""
    for failed in storage.at(location).delete_files([file_path(partition_path)]):
        uri = storage.at(location).uri_of(file_path(partition_path))
        raise RetryableError(
            f"{uri} could not be deleted: {failed.reason}.", kind="storage_unavailable", remedy="Try again."
        )


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
