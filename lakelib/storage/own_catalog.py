"""Storage. Where a lake's own catalog is, if nobody has named one.

It is in the folder of the local warehouse: a lake is one folder. A lake that was made when it was in the working
directory, at ./.lake/catalog, keeps it there: the warehouse's note tells from then on.
"""

import os
from itertools import islice

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.settings import DEFAULT_WAREHOUSE, EARLIER_CATALOG
from lakelib.storage.filesystem import Storage
from lakelib.storage.listing import list_local
from lakelib.storage.marker import parse_note, read_note
from lakelib.storage.paths import OWN_CATALOG, is_own_file, split_uri

_LISTED_AT_MOST = 10_000


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
