"""Storage. Which lake a warehouse belongs to: the note in it that says so, and where a lake's own catalog is, if nobody
has named one. That is in the folder of the local warehouse: a lake is one folder. A lake that was made when it was in
the working directory, at ./.lake/catalog, keeps it there: the warehouse's note tells from then on."""

import json
import os
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.errors import CorruptionError, InvalidInputError, NotFoundError
from lakelib.model.identity import Marker
from lakelib.settings import DEFAULT_WAREHOUSE, EARLIER_CATALOG
from lakelib.storage.failures import translated
from lakelib.storage.filesystem import Storage
from lakelib.storage.listing import list_local
from lakelib.storage.paths import OWN_CATALOG, is_own_file, split_uri

MARKER_NAME = "_lake.json"
_ABOUT = "Which catalog this warehouse belongs to. lakelib reads it before it publishes or deletes; leave it here."
_LISTED_AT_MOST = 10_000


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCatalog:
    folder: str
    is_there: bool
    relative: str | None
    """To the warehouse; None for a remote one, which holds no catalog."""


def find_own_catalog(storage: Storage) -> OwnCatalog:
    """The folder of the embedded catalog that goes with a warehouse. Makes nothing. Raises InvalidInputError for a
    warehouse whose catalog is another one."""
    earlier = os.path.abspath(EARLIER_CATALOG)
    if not storage.is_local:
        return OwnCatalog(folder=earlier, is_there=os.path.isdir(earlier), relative=None)
    warehouse = split_uri(storage.uri)[2]
    own = os.path.join(warehouse, OWN_CATALOG)
    if os.path.isdir(own):
        return _found(warehouse, own)
    if os.path.isdir(earlier) and warehouse == os.path.abspath(DEFAULT_WAREHOUSE):
        return _found(warehouse, earlier)
    marker = parse_note(storage, read_note(storage))
    if marker is not None:
        named = os.path.normpath(os.path.join(warehouse, marker.embedded)) if marker.embedded else None
        if named is None or not os.path.isdir(named):
            raise _elsewhere(storage, f"it is {marker.catalog}")
        return _found(warehouse, named)
    has_tables = _has_tables(warehouse)
    if os.path.isdir(earlier) and has_tables:
        return _found(warehouse, earlier)
    if has_tables:
        inside = os.path.join(warehouse, os.path.basename(DEFAULT_WAREHOUSE))
        if os.path.isdir(os.path.join(inside, OWN_CATALOG)):
            raise InvalidInputError(
                f"{warehouse} is no lake; the lake is in {inside}.",
                kind="catalog_not_named",
                remedy=f"Name {inside}.",
            )
        raise _elsewhere(storage, f"there is none in {own}, nor in {earlier}")
    return OwnCatalog(folder=own, is_there=False, relative=OWN_CATALOG)


def given_catalog(storage: Storage, folder: str) -> OwnCatalog:
    """An embedded catalog in a folder that somebody chose."""
    path = os.path.abspath(folder)
    relative = os.path.relpath(path, split_uri(storage.uri)[2]) if storage.is_local else None
    return OwnCatalog(folder=path, is_there=os.path.isdir(path), relative=relative)


def _found(warehouse: str, folder: str) -> OwnCatalog:
    return OwnCatalog(folder=folder, is_there=True, relative=os.path.relpath(folder, warehouse))


def _has_tables(warehouse: str) -> bool:
    return any(is_own_file(entry.path) for entry in islice(list_local(warehouse), _LISTED_AT_MOST))


def _elsewhere(storage: Storage, where: str) -> InvalidInputError:
    return InvalidInputError(
        f"The warehouse {storage.uri} has tables, and no catalog is named that knows them: {where}.",
        kind="catalog_not_named",
        remedy="Name it in the setting catalog (LAKE_CATALOG, --catalog). A lake whose catalog is in .lake/catalog of "
        "a working directory is to be opened from there once.",
    )
