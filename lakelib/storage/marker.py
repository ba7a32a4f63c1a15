"""Storage. The note in a warehouse that says which lake it belongs to."""

import json
import os
from contextlib import suppress
from functools import lru_cache
from uuid import UUID

from lakelib.errors import CorruptionError, NotFoundError
from lakelib.model.identity import Marker
from lakelib.storage.failures import translated
from lakelib.storage.filesystem import Storage
from lakelib.storage.paths import split_uri

MARKER_NAME = "_lake.json"
_ABOUT = "Which catalog this warehouse belongs to. lakelib reads it before it publishes or deletes; leave it here."


def read_note(storage: Storage) -> bytes | None:
    """The note as it stands; None if there is none."""
    if storage.is_local:
        # Read before each publish: as directly as can be.
        with suppress(FileNotFoundError, NotADirectoryError), open(_local_path(storage.uri), "rb") as file:
            return file.read()
        return None
    try:
        return storage.read_bytes(MARKER_NAME)
    except NotFoundError:
        return None


def parse_note(storage: Storage, note: bytes | None) -> Marker | None:
    """Raises CorruptionError for a note that makes no sense."""
    if note is None:
        return None
    try:
        said = json.loads(note)
        return Marker(
            lake_id=UUID(said["lake"]),
            warehouse_id=UUID(said["warehouse"]),
            epoch=int(said["epoch"]),
            token=UUID(said["token"]),
            uri=str(said["uri"]),
            folder=said["folder"],
            catalog=str(said["catalog"]),
            embedded=said["embedded"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptionError(
            f"The note {storage.uri_of(MARKER_NAME)} cannot be read: {error!r}.",
            kind="unreadable_note",
            remedy="Restore it, or move it away and adopt the lake with `lake adopt`.",
        ) from error


def create_marker(storage: Storage, marker: Marker) -> None:
    """Writes the note unless there is one. Some stores do not tell: read it afterwards."""
    storage.create_bytes(MARKER_NAME, _text(marker))


def replace_marker(storage: Storage, marker: Marker) -> None:
    """Writes the note in place of the one that is there, at once."""
    storage.replace_bytes(MARKER_NAME, _text(marker))


def folder_number(storage: Storage) -> int | None:
    """The number of a local warehouse's folder; None where there are no such numbers, or no folder yet."""
    if storage.is_local:
        with suppress(OSError):
            return os.stat(split_uri(storage.uri)[2]).st_ino
    return None


def make_folder(storage: Storage) -> None:
    """A local warehouse's folder is there afterwards."""
    if storage.is_local:
        with translated(storage.uri):
            os.makedirs(split_uri(storage.uri)[2], exist_ok=True)


@lru_cache(maxsize=64)
def _local_path(uri: str) -> str:
    return f"{split_uri(uri)[2].rstrip('/')}/{MARKER_NAME}"


def _text(marker: Marker) -> bytes:
    said = {
        "about": _ABOUT,
        "lake": str(marker.lake_id),
        "warehouse": str(marker.warehouse_id),
        "epoch": marker.epoch,
        "token": str(marker.token),
        "uri": marker.uri,
        "folder": marker.folder,
        "catalog": marker.catalog,
        "embedded": marker.embedded,
    }
    return json.dumps(said, indent=2).encode() + b"\n"
