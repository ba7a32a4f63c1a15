"""Pure. Decides whether a catalog may change a warehouse."""

from uuid import uuid5

from lakelib.model.identity import Difference, Identity, Marker, Warehouse

DISOWNED = "lake_disowned"
DIFFERS = "identity_differs"
_OF_SERVER = {
    "identity": "the catalog has lost its identity",
    "epoch": "the catalog was adopted at this moment",
    "server": "the catalog is on another PostgreSQL server than the one that it was made on, as after a restored dump",
    "database": "the catalog is in another database than the one that it was made in, as after a restored dump",
    "timeline": "the catalog's server has been promoted, or restored to an earlier moment",
    "copied": "the data folder of the catalog's server is a copy",
}


def find_warehouse(identity: Identity, marker: Marker | None, uri: str) -> Warehouse | None:
    """The warehouse that is at this place, as the catalog knows it: its note tells, else the place itself. None for one
    that the catalog does not know."""
    if marker is None:
        return next((each for each in identity.warehouses if each.uri == uri), None)
    if marker.lake_id != identity.id:
        return None
    return next((each for each in identity.warehouses if each.id == marker.warehouse_id), None)


def find_difference(identity: Identity, marker: Marker | None, uri: str, folder: int | None) -> Difference | None:
    """What speaks against it. `uri` is where the warehouse is, `folder` the number of its folder.

    A warehouse that has no note, and that the catalog does not know, is still to be bound: that is no difference.
    """
    if identity.differs is not None:
        return _differs(_OF_SERVER.get(identity.differs, identity.differs))
    known = find_warehouse(identity, marker, uri)
    if marker is None:
        return None if known is None else _differs(f"{uri} has lost the note that says that it is this catalog's")
    if marker.lake_id != identity.id:
        return _differs(f"{uri} belongs to another lake ({marker.lake_id}), whose catalog is {marker.catalog}")
    if known is not None and (marker.epoch, marker.token) != (known.epoch, known.token):
        return _other_epoch(marker, known, uri)
    if known is None and any(each.uri == uri for each in identity.warehouses):
        return _differs(
            f"{uri} is where another warehouse of this catalog was, and tables of that would be taken for its"
        )
    if marker.uri != uri and (folder is None or folder != marker.folder):
        return _differs(f"{uri} is a copy of {marker.uri}")
    return None


def new_warehouse(identity: Identity, uri: str) -> Warehouse:
    """One that is bound for the first time. Whoever binds it to the lake says the same of it."""
    warehouse_id = uuid5(identity.id, uri)
    return Warehouse(id=warehouse_id, uri=uri, epoch=identity.epoch, token=uuid5(warehouse_id, str(identity.epoch)))


def named_warehouse(marker: Marker) -> Warehouse:
    """The warehouse that a note tells of."""
    return Warehouse(id=marker.warehouse_id, uri=marker.uri, epoch=marker.epoch, token=marker.token)


def _other_epoch(marker: Marker, known: Warehouse, uri: str) -> Difference:
    if marker.epoch > known.epoch:
        detail = f"another catalog ({marker.catalog}) has adopted {uri}: its epoch is {marker.epoch}"
        return Difference(kind=DISOWNED, detail=f"{detail}, and {known.epoch} in this catalog")
    if marker.epoch < known.epoch:
        detail = f"the epoch of {uri} is {marker.epoch}, and {known.epoch} in this catalog"
        return _differs(f"{detail}: its adoption was not finished, or it is an older copy")
    return _differs(f"{uri} has not been adopted from this catalog yet")


def _differs(detail: str) -> Difference:
    return Difference(kind=DIFFERS, detail=detail)
