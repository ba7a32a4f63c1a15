"""How long a use case goes on trying: every wait has an end, and keeps nobody from other work. What others were faster
than is done again, in the one loop that does so: each operation says how, and an attempt that was overtaken has put its
work in order, and waited if that is of use."""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NoReturn, TypeVar

from lakelib.dataclass import dataclass
from lakelib.errors import LakeError, RetryableError

PATIENCE_SECONDS = 30.0
"""How long a publish is tried before its caller hears that the table is busy."""
Result = TypeVar("Result")

MOST_CHANGES = 10
"""So often what is looked at, decided and changed in a moment is tried; then others are changing it all the time."""


_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.25
_POLL_SECONDS = 0.03
_SHORTEST_TURN_SECONDS = 0.01
_LONGEST_POLL_SECONDS = 0.75
"""Well below the time for which a place in line is believed."""
_MOST_PUBLISHERS = 4
"""Of one process at once, each of which may keep a connection while it waits for a table: fewer than there are
connections, for readers need some."""


class GaveUpError(RetryableError):
    """A table was busy for too long. Nothing was published."""

    default_kind = "catalog_busy"


class Patience:
    """How long a call may still wait, in all, and pauses that grow, with jitter. What it does itself is no waiting."""

    def __init__(self, what: str, seconds: float = PATIENCE_SECONDS) -> None:
        """`what` is what was attempted, for the message."""
        self._what = what
        self._seconds = seconds
        self._waited_seconds = 0.0
        self._waiting_since: float | None = None
        self._pause = _FIRST_PAUSE_SECONDS
        self._pace = _Pace()

    @property
    def waited_seconds(self) -> float:
        since = self._waiting_since
        return self._waited_seconds + (0.0 if since is None else time.monotonic() - since)

    @property
    def left_seconds(self) -> float:
        return max(0.0, self._seconds - self.waited_seconds)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What is done within counts as waiting."""
        if self._waiting_since is not None:
            yield
            return
        self._waiting_since = time.monotonic()
        try:
            yield
        finally:
            self._waited_seconds += time.monotonic() - self._waiting_since
            self._waiting_since = None

    def pause(self) -> None:
        """Waits a while, each time for longer. Raises GaveUpError if there is no time left."""
        self._sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)

    def poll(self, ahead: int = 1) -> None:
        """Waits for about half as long as those ahead will take. Raises GaveUpError if there is no time left."""
        self._sleep(self._pace.half(ahead))

    def _sleep(self, longest_seconds: float) -> None:
        if not self.left_seconds:
            self.give_up()
        seconds = min(random.uniform(longest_seconds / 2, longest_seconds), self.left_seconds)
        time.sleep(seconds)
        if self._waiting_since is None:
            self._waited_seconds += seconds

    def give_up(self) -> NoReturn:
        raise GaveUpError(
            f"{self._what}: the table was busy for {self.waited_seconds:.1f} s. Nothing was published.",
            remedy="Try again. If it lasts: lake.waiting tells who stands in line, pg_locks who holds the table's row.",
        )


class _Pace:
    """How long one in a line takes, by how it has gone so far."""

    def __init__(self) -> None:
        self._seconds_each = 2 * _POLL_SECONDS
        self._seen: tuple[float, int] | None = None

    def half(self, ahead: int) -> float:
        """Half of the seconds that so many will take, from now on."""
        now = time.monotonic()
        if self._seen is not None and self._seen[1] > ahead:
            seen_at, seen_ahead = self._seen
            self._seconds_each = max((now - seen_at) / (seen_ahead - ahead), _SHORTEST_TURN_SECONDS)
        self._seen = now, ahead
        return min(ahead * self._seconds_each / 2, _LONGEST_POLL_SECONDS)


class Publishers:
    """Of one process at most one thread publishes to a table at a time, and a few in all. Those who wait keep no
    connection meanwhile. Who publishes to several tables enters none. A forked child begins anew."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process_id = os.getpid()
        self._tables: dict[int, threading.RLock] = {}
        self._slots = threading.BoundedSemaphore(_MOST_PUBLISHERS)

    @contextmanager
    def enter(self, table_id: int | None, patience: Patience) -> Iterator[None]:
        """Until its end it counts as waiting. Raises GaveUpError if this thread cannot in time."""
        if self._process_id != os.getpid():
            self._begin()
        with patience.waiting(), ExitStack() as entered:
            if table_id is not None:
                entered.enter_context(_held(self._tables.setdefault(table_id, threading.RLock()), patience))
                entered.enter_context(_held(self._slots, patience))
            yield


@contextmanager
def _held(lock: "threading.RLock | threading.Semaphore", patience: Patience) -> Iterator[None]:
    while not lock.acquire(timeout=max(patience.left_seconds, 0.001)):
        patience.poll()
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Others were first, and another attempt may succeed."""

    error: LakeError | None = None
    """What to raise if this was the last one; None where the attempts' own waiting has an end."""


def do_again(attempt: Callable[[], Result | Overtaken], most_tries: int | None = None) -> Result:
    """What comes of the first attempt that nobody overtakes."""
    tries = 1
    while isinstance(outcome := attempt(), Overtaken):
        if tries == most_tries and outcome.error is not None:
            raise outcome.error
        tries += 1
    return outcome
