"""Consumers: named positions in tables' histories. They move with what is published (`commits.publish`)."""

from datetime import UTC, timedelta

from lakelib.catalog.connect import Catalog
from lakelib.catalog.records import Row
from lakelib.errors import NotFoundError
from lakelib.model.positions import CHANGES, ConsumerInfo, ConsumerStatus, Lag, ReadRange, ranges_of


def find_consumer(catalog: Catalog, table_id: int, name: str) -> ConsumerInfo | None:
    """The consumer as it is now; None if there is none of that name, or the table was dropped."""
    row = catalog.one("find_consumer", {"table_id": table_id, "name": name})
    return None if row is None else _info(row)


def find_standing(
    catalog: Catalog, table_id: int, name: str, own_table_id: int, view: str
) -> tuple[int | None, ReadRange | None, bool]:
    """Where the consumer of a run stands, and what the newest commit of its own table has read by that view, None for
    what is not there; and whether that table was rolled back since. All as of one moment."""
    row = catalog.one("find_standing", {"table_id": table_id, "name": name, "own_table_id": own_table_id})
    assert row is not None
    last = () if row["said"] is None else ranges_of({CHANGES: row["said"]})
    read = next((each for each in last if each.view == view), None)
    return row["position"], read, row["is_rolled_back"]


def make_consumer(
    catalog: Catalog, table_id: int, name: str, *, start: int, told: timedelta | None, usual: timedelta
) -> ConsumerInfo | None:
    """The consumer of that name, which is there afterwards. A new one begins after the snapshot `start`, one that is
    there stays where it is. It keeps for as long as is `told`; else, if it is new, as is `usual`. None where the table
    or that snapshot is gone."""
    parameters = {"table_id": table_id, "name": name, "start": start, "told": told, "usual": usual}
    row = catalog.one("make_consumer", parameters)
    return None if row is None else _info(row)


def remove_consumer(catalog: Catalog, table_id: int, name: str) -> bool:
    """It holds nothing any more; says whether there was such a consumer."""
    return catalog.one("remove_consumer", {"table_id": table_id, "name": name}) is not None


def list_consumers(catalog: Catalog, table_id: int | None = None, name: str | None = None) -> list[ConsumerStatus]:
    """Those of a table, or of all, by table and name."""
    return [_status(row) for row in catalog.all("list_consumers", {"table_id": table_id, "name": name})]


def consumer_missing(name: str, table_name: str) -> NotFoundError:
    return NotFoundError(
        f"Table {table_name} has no consumer {name!r}.",
        kind="consumer_not_found",
        remedy="consumers() lists them; consumer(NAME) makes one.",
    )


def _info(row: Row) -> ConsumerInfo:
    return ConsumerInfo(
        table_id=row["table_id"],
        name=row["name"],
        position=row["position"],
        keep_for=row["keep_for"],
        created_at=row["created_at"].astimezone(UTC),
        created_by=row["created_by"],
        advanced_at=row["advanced_at"] and row["advanced_at"].astimezone(UTC),
        advanced_by=row["advanced_by"],
    )


def _status(row: Row) -> ConsumerStatus:
    info = _info(row)
    age = timedelta(0) if row["since"] is None else max(row["now"] - row["since"], timedelta(0))
    return ConsumerStatus(
        table=row["table_name"],
        name=info.name,
        position=info.position,
        head=row["head_id"],
        lag=Lag(snapshots=row["snapshots"], rows=row["rows"], age=age),
        keep_for=info.keep_for,
        holds=row["held"],
        created_at=info.created_at,
        created_by=info.created_by,
        advanced_at=info.advanced_at,
        advanced_by=info.advanced_by,
    )
