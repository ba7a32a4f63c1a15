"""Leases: a reader's hold on a snapshot, or on a range of them. While one lasts, none of their files is deleted."""

import logging
import os
import socket
import threading
import uuid
from collections.abc import Sequence
from datetime import timedelta

from lakelib.catalog.connect import Catalog
from lakelib.catalog.snapshots import missing_snapshot
from lakelib.dataclass import dataclass
from lakelib.errors import LakeError, LeaseLostError
from lakelib.model.table import TableInfo

LEASE_DURATION = timedelta(minutes=15)

_LOG = logging.getLogger(__name__)
_NO_SNAPSHOT = 2**63
"""Beyond all ids."""
_RENEWALS_A_DURATION = 3
"""More than two: when one renewal fails, the next one still comes in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    id: uuid.UUID
    catalog: Catalog

    def renew(self) -> None:
        """Holds on for another full duration. Raises RetryableError if the hold had been lost."""
        parameters = {"id": self.id, "duration": LEASE_DURATION}
        if self.catalog.one("renew_lease", parameters) is None:
            raise LeaseLostError(
                "The lease on the snapshot being read was lost: the reader paused for longer than it lasts.",
                remedy="Read again.",
            )

    def release(self) -> None:
        self.catalog.do("release_lease", {"id": self.id})


def take_lease(catalog: Catalog, table: TableInfo, snapshot_id: int, *, duration: timedelta | None = None) -> Lease:
    """Holds the snapshot's files, for the usual time unless told. Raises NotFoundError if the snapshot is gone."""
    lease = Lease(id=uuid.uuid4(), catalog=catalog)
    parameters = _parameters(lease, table, duration) | {"snapshot_id": snapshot_id}
    if catalog.one("take_lease", parameters) is None:
        raise missing_snapshot(catalog, table, snapshot_id)
    return lease


def take_leases(
    catalog: Catalog, wanted: Sequence[tuple[TableInfo, int]], duration: timedelta = LEASE_DURATION
) -> list[Lease]:
    """Holds the files of several tables' snapshots, for the usual time unless told. Raises NotFoundError for one that
    is gone, and holds none then."""
    leases = [Lease(id=uuid.uuid4(), catalog=catalog) for _ in wanted]
    parameters = {
        "ids": [lease.id for lease in leases],
        "table_ids": [table.id for table, _ in wanted],
        "snapshot_ids": [snapshot_id for _, snapshot_id in wanted],
        "holder": _holder(),
        "duration": duration,
    }
    held = {row["id"] for row in catalog.all("take_leases", parameters)}
    for lease, (table, snapshot_id) in zip(leases, wanted, strict=True):
        if lease.id not in held:
            release_leases(catalog, [each for each in leases if each.id in held])
            raise missing_snapshot(catalog, table, snapshot_id)
    return leases


def release_leases(catalog: Catalog, leases: Sequence[Lease]) -> None:
    catalog.do("release_leases", {"ids": [lease.id for lease in leases]})


def take_range(
    catalog: Catalog, table: TableInfo, first_id: int, last_id: int, duration: timedelta | None = None
) -> Lease:
    """Holds the files of all snapshots from the first to the last, for the usual time unless told. Raises NotFoundError
    for the first of them that is gone, and holds none then."""
    if not 0 < first_id <= last_id < _NO_SNAPSHOT:
        raise missing_snapshot(catalog, table, first_id)
    lease = Lease(id=uuid.uuid4(), catalog=catalog)
    parameters = _parameters(lease, table, duration) | {"first_id": first_id, "last_id": last_id}
    row = catalog.one("take_range", parameters)
    assert row is not None
    if row["missing"] is not None:
        raise missing_snapshot(catalog, table, row["missing"])
    return lease


def _parameters(lease: Lease, table: TableInfo, duration: timedelta | None) -> dict[str, object]:
    return {
        "id": lease.id,
        "table_id": table.id,
        "holder": _holder(),
        "duration": duration or LEASE_DURATION,
    }


def _holder() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"


class LeaseKeeper:
    """Renews the leases of reads that take long, on one thread that ends once nothing is held.

    Short reads cost it nothing but an entry. Threads may share it; a forked child renews what it takes itself.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process_id = os.getpid()
        self._held: dict[uuid.UUID, Lease] = {}
        self._lost: dict[uuid.UUID, LakeError] = {}
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def keep(self, lease: Lease) -> None:
        """Renews the lease from now on until it is let go."""
        if self._process_id != os.getpid():
            self._begin()
        self._held[lease.id] = lease
        with self._starting:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._renew_in_time, name="lakelib-leases", daemon=True)
                self._thread.start()

    def let_go(self, lease: Lease) -> LakeError | None:
        """Renews the lease no more. The error with which it was lost meanwhile, if it was."""
        # Takes no lock: it may be the garbage collector who calls, in the middle of `keep`.
        self._held.pop(lease.id, None)
        return self._lost.pop(lease.id, None)

    def renew(self, lease: Lease) -> None:
        """Renews one lease, and notes if it is lost. A catalog that is out of reach may be back at the next time."""
        try:
            lease.renew()
        except LeaseLostError as error:
            if lease.id in self._held:
                self._lost[lease.id] = error
        except LakeError as error:
            _LOG.debug("lease %s not renewed: %s", lease.id, error)

    def close(self) -> None:
        """Ends the thread. Nothing is renewed any more."""
        self._closed.set()

    def _renew_in_time(self) -> None:
        while not self._closed.wait(LEASE_DURATION.total_seconds() / _RENEWALS_A_DURATION):
            for lease in list(self._held.values()):
                if lease.id not in self._lost:
                    self.renew(lease)
            with self._starting:
                if not self._held:
                    self._thread = None
                    return
