"""Events: who publishes wakes those who listen. A hint alone: what there is tells the catalog.

The statement that tells comes after the transaction that publishes, and only where somebody has said that he listens.
It may be lost, with a connection or a client; whoever listens looks again now and then.
"""

import select
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Self

import psycopg

from lakelib.catalog.connect import Catalog
from lakelib.catalog.connections import Session
from lakelib.catalog.queries import query
from lakelib.catalog.records import snapshot_from_row
from lakelib.model.commit import Done, Published
from lakelib.model.table import Snapshot

CHANNEL = "lake_commit"
_BELIEVED = timedelta(seconds=30)
"""How long a listener is believed to be there."""
_SAID_AGAIN_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_MOST = 1000


def tell(catalog: Catalog, done: Done) -> None:
    """Wakes those who listen to what was published. Whatever fails here changes nothing of that."""
    told = [each for each in done.commits if isinstance(each, Published)]
    ids = {"table_ids": [each.table_id for each in told], "snapshot_ids": [each.snapshot.id for each in told]}
    catalog.hint("tell", ids)


def list_after(catalog: Catalog, table_id: int, snapshot_id: int) -> Sequence[Snapshot]:
    """The next snapshots of a table, expired or not, oldest first; not all, if there are many."""
    rows = catalog.all("list_snapshots_after", {"table_id": table_id, "after": snapshot_id, "limit": _MOST})
    return [snapshot_from_row(row) for row in rows]


class Listener:
    """Listens to a table as long as its block lasts, over a connection of its own. Where that fails, as behind a
    pooler, nobody wakes it, and each wait lasts until its end."""

    def __init__(self, catalog: Catalog, table_id: int) -> None:
        self._catalog = catalog
        self._table_id = table_id
        self._id = uuid.uuid4()
        self._session: Session | None = None
        self._said_at = 0.0

    def __enter__(self) -> Self:
        self._attend()
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            with suppress(psycopg.Error):
                self._say(timedelta(0))
            self._session.close()

    def wait(self, seconds: float) -> None:
        """Returns as soon as something was told, or when the time is over."""
        deadline = time.monotonic() + seconds
        self._attend()
        if self._session is None or not _is_readable(self._session, deadline - time.monotonic()):
            time.sleep(max(0.0, deadline - time.monotonic()))
            return
        try:
            for _ in self._session.notifies(timeout=0):
                pass
        except psycopg.Error:  # the server has ended it; the next wait opens another one
            self._drop()

    def _attend(self) -> None:
        """Is connected, and is believed to be there, if that can be."""
        try:
            if self._session is None:
                self._session = self._catalog.open_apart(_CONNECT_SECONDS)
                self._session.execute(f"listen {CHANNEL}")
                self._said_at = 0.0
            if time.monotonic() - self._said_at >= _SAID_AGAIN_SECONDS or not self._said_at:
                self._say(_BELIEVED)
                self._said_at = time.monotonic()
        except psycopg.Error:
            self._drop()

    def _say(self, duration: timedelta) -> None:
        assert self._session is not None
        parameters = {"id": self._id, "table_id": self._table_id, "duration": duration}
        self._session.execute(query("listen"), parameters)

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def _is_readable(session: Session, seconds: float) -> bool:
    poll = select.poll()
    poll.register(session.pgconn.socket, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
