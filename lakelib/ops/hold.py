"""Part of reading: what is read is held for as long as it is being read."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol

from lakelib.catalog import leases, snapshots
from lakelib.errors import CorruptionError, LakeError
from lakelib.model.table import TableInfo
from lakelib.ops.runtime import Runtime

FRAME_HOLD = timedelta(days=1)


class Pinned(Protocol):
    """What a snapshot is held for: the splits, if there are any, to be read of it."""

    @property
    def table(self) -> TableInfo: ...
    @property
    def snapshot_id(self) -> int: ...
    @property
    def splits(self) -> Sequence[Any]: ...


class Held:
    """A lease on the plan's snapshot for as long as its rows are being read, however long that takes.

    Raises NotFoundError if the snapshot has expired since the plan was made: files may be missing in it. Raises
    RetryableError at the end if the lease was lost meanwhile, as in a process that was stopped for a while.
    """

    def __init__(self, runtime: Runtime, plan: Pinned, first_id: int | None = None) -> None:
        """With `first_id` on all snapshots from that one to the plan's."""
        self._runtime = runtime
        self._first_id = first_id
        self._plan = plan
        self._lease: leases.Lease | None = None

    def __enter__(self) -> None:
        if self._plan.snapshot_id and self._plan.splits:
            self._lease = take(self._runtime, self._plan.table, self._first_id, self._plan.snapshot_id)
            self._runtime.leases.keep(self._lease)
        else:  # that there is nothing to read may be due to an expiry
            snapshots.check_kept(self._runtime.catalog, self._plan.table, self._plan.snapshot_id)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._lease is not None:
            _let_go(self._runtime, [self._lease], error)


class HeldTogether:
    """As `Held`, of several plans at once."""

    def __init__(self, runtime: Runtime, plans: Sequence[Pinned]) -> None:
        self._runtime = runtime
        self._plans = plans
        self._leases: list[leases.Lease] = []

    def __enter__(self) -> None:
        wanted = {(each.table.id, each.snapshot_id): each for each in self._plans if each.snapshot_id and each.splits}
        if wanted:
            pairs = [(each.table, each.snapshot_id) for each in wanted.values()]
            self._leases = leases.take_leases(self._runtime.catalog, pairs)
        for lease in self._leases:
            self._runtime.leases.keep(lease)
        try:
            for each in self._plans:
                if (each.table.id, each.snapshot_id) not in wanted:
                    snapshots.check_kept(self._runtime.catalog, each.table, each.snapshot_id)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._leases:
            _let_go(self._runtime, self._leases, error)


def _let_go(runtime: Runtime, held: Sequence[leases.Lease], error: object) -> None:
    if isinstance(error, CorruptionError):  # a file that is gone because the lease was lost is no corruption
        for lease in held:
            runtime.leases.renew(lease)
    lost = [each for lease in held if (each := runtime.leases.let_go(lease)) is not None]
    with suppress(LakeError):  # the rows are read, and a lease that is not given back ends by itself
        leases.release_leases(runtime.catalog, held)
    if lost and (error is None or isinstance(error, CorruptionError)):
        raise lost[0]


def take(
    runtime: Runtime, table: TableInfo, first_id: int | None, last_id: int, duration: timedelta | None = None
) -> leases.Lease:
    """A lease on a snapshot, or on all from the first on."""
    if first_id is None:
        return leases.take_lease(runtime.catalog, table, last_id, duration=duration)
    return leases.take_range(runtime.catalog, table, first_id, last_id, duration)


def hold_for_spark(runtime: Runtime, *plans: Pinned) -> list[leases.Lease]:
    """Holds the plans' snapshots for a day: nobody tells when a data frame, and all that was made of it, is not used
    any more."""
    wanted = {(each.table.id, each.snapshot_id): each for each in plans if each.snapshot_id and each.splits}
    pairs = [(each.table, each.snapshot_id) for each in wanted.values()]
    held = leases.take_leases(runtime.catalog, pairs, FRAME_HOLD) if pairs else []
    for each in plans:
        if (each.table.id, each.snapshot_id) not in wanted:
            snapshots.check_kept(runtime.catalog, each.table, each.snapshot_id)
    return held
