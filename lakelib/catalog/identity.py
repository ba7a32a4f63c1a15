"""The lake's identity as the catalog has it."""

from uuid import UUID

from lakelib.catalog.address import place_of
from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.queries import query
from lakelib.catalog.records import Row
from lakelib.model.identity import Identity, Warehouse


def load_identity(catalog: Catalog) -> Identity:
    return catalog.run(_load)


def knows_table_below(catalog: Catalog, uri: str) -> bool:
    """Whether the catalog has a table below this place, dropped or not."""
    parameters = {"root": _root(uri)}
    return catalog.run(lambda db: db.execute(query("find_table_below"), parameters).fetchone()) is not None


def bind_warehouse(catalog: Catalog, warehouse: Warehouse) -> None:
    """The lake has this warehouse. One that it has is left as it is."""
    catalog.run(lambda db: db.execute(query("insert_warehouse"), _warehouse_row(warehouse)))


def adopt(catalog: Catalog, warehouse_id: UUID, uri: str, *, above: int, by: str, reason: str) -> Identity:
    """A new epoch begins, higher than `above`, for warehouse and catalog; the catalog is bound to this server. Where it
    has come from another server its other warehouses are to be adopted, too. `uri` is for a warehouse that the
    catalog does not know."""

    def work(db: Connection) -> Identity:
        db.execute(query("lock_identity"))
        before = _load(db)
        epoch = db.execute(query("adopt_identity"), {"epoch": above, "by": by, "reason": reason}).fetchone()
        assert epoch is not None
        if before.differs is not None:
            db.execute(query("let_warehouses_go"), {"id": warehouse_id})
        db.execute(query("adopt_warehouse"), {"id": warehouse_id, "uri": uri, "epoch": epoch["epoch"]})
        return _load(db)

    return catalog.run(work)


def describe_server(catalog: Catalog) -> str:
    """Where the catalog is, for people: host, port and database."""
    return place_of(catalog.url)


def _load(db: Connection) -> Identity:
    row = db.execute(query("load_identity")).fetchone()
    assert row is not None
    warehouses = tuple(_warehouse(each) for each in row["warehouses"] or ())
    return Identity(**{**row, "warehouses": warehouses})


def _warehouse(row: Row) -> Warehouse:
    return Warehouse(id=UUID(row["id"]), uri=row["uri"], epoch=row["epoch"], token=UUID(row["token"]))


def _warehouse_row(warehouse: Warehouse) -> dict[str, object]:
    return {"id": warehouse.id, "uri": warehouse.uri, "epoch": warehouse.epoch, "token": warehouse.token}


def _root(uri: str) -> str:
    """What the locations begin with that lie below a place."""
    return uri.rstrip("/") + "/"
