"""How long a use case goes on trying, and in whose turn: every wait has an end, and keeps nobody from other work."""

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lakelib.errors import RetryableError

PATIENCE_SECONDS = 30.0
"""How long a publish is tried before its caller hears that the table is busy."""
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.25
_MOST_PUBLISHERS = 4
"""Of one process at once, each of which may keep a connection while it waits for a table: fewer than there are
connections, for readers need some."""


class Patience:
    """The time that is left of a call, and pauses that grow, with jitter."""

    def __init__(self, what: str, seconds: float = PATIENCE_SECONDS) -> None:
        """`what` is what was attempted, for the message."""
        self._what = what
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._pause = _FIRST_PAUSE_SECONDS

    @property
    def left_seconds(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def pause(self) -> None:
        """Waits a while. Raises RetryableError if there is no time left."""
        if not self.left_seconds:
            raise RetryableError(
                f"{self._what}: the table was busy for {self._seconds:g} s. Nothing was published.",
                kind="catalog_busy",
                remedy="Try again. If it lasts, find out in pg_locks who holds the table's row.",
            )
        time.sleep(min(random.uniform(self._pause / 2, self._pause), self.left_seconds))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)


class Turns:
    """Of one process at most one thread publishes to a table at a time, and a few in all. Those who wait keep no
    connection meanwhile. A forked child begins anew."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process_id = os.getpid()
        self._tables: dict[int, threading.RLock] = {}
        self._slots = threading.BoundedSemaphore(_MOST_PUBLISHERS)

    @contextmanager
    def take(self, table_id: int, patience: Patience) -> Iterator[None]:
        """Raises RetryableError if it does not come to this thread's turn in time."""
        if self._process_id != os.getpid():
            self._begin()
        with _held(self._tables.setdefault(table_id, threading.RLock()), patience), _held(self._slots, patience):
            yield


@contextmanager
def _held(lock: "threading.RLock | threading.Semaphore", patience: Patience) -> Iterator[None]:
    while not lock.acquire(timeout=max(patience.left_seconds, 0.001)):
        patience.pause()
    try:
        yield
    finally:
        lock.release()
