"""How long a use case goes on trying, and in whose turn: every wait has an end, and keeps nobody from other work."""

import os
import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from lakelib.errors import RetryableError

PATIENCE_SECONDS = 30.0
"""How long a publish is tried before its caller hears that the table is busy."""
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.25
_POLL_SECONDS = 0.03
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

    @property
    def left_seconds(self) -> float:
        since = self._waiting_since
        waiting_seconds = 0.0 if since is None else time.monotonic() - since
        return max(0.0, self._seconds - self._waited_seconds - waiting_seconds)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What is done within counts as waiting."""
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

    def poll(self) -> None:
        """Waits a moment, as short as for whoever has come last. Raises GaveUpError if there is no time left."""
        self._sleep(_POLL_SECONDS)

    def _sleep(self, longest_seconds: float) -> None:
        if not self.left_seconds:
            self.give_up()
        seconds = min(random.uniform(longest_seconds / 2, longest_seconds), self.left_seconds)
        time.sleep(seconds)
        if self._waiting_since is None:
            self._waited_seconds += seconds

    def give_up(self) -> NoReturn:
        raise GaveUpError(
            f"{self._what}: the table was busy for {self._seconds - self.left_seconds:.1f} s. Nothing was published.",
            remedy="Try again. If it lasts, find out in pg_locks who holds the table's row.",
        )


class Turns:
    """Of one process at most one thread publishes to a table at a time, and a few in all. Those who wait keep no
    connection meanwhile. A forked child begins anew."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process_id = os.getpid()
        self._tables: dict[int, threading.RLock] = {}
        self._queues: dict[int, _Queue] = {}
        self._slots = threading.BoundedSemaphore(_MOST_PUBLISHERS)

    @contextmanager
    def take(self, table_id: int, patience: Patience) -> Iterator[None]:
        """Raises GaveUpError if it does not come to this thread's turn in time."""
        self._check_process()
        with _held(self._tables.setdefault(table_id, threading.RLock()), patience), _held(self._slots, patience):
            yield

    @contextmanager
    def queue(self, table_id: int, patience: Patience) -> Iterator[None]:
        """For those who wait until all others do: who came first is the first to ask. Raises GaveUpError."""
        self._check_process()
        with self._queues.setdefault(table_id, _Queue()).head(patience):
            yield

    def _check_process(self) -> None:
        if self._process_id != os.getpid():
            self._begin()


class _Queue:
    """Of threads, in the order in which they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: deque[threading.Event] = deque()

    @contextmanager
    def head(self, patience: Patience) -> Iterator[None]:
        """Holds the first place, once it has come to it."""
        place = threading.Event()
        with self._lock:
            self._places.append(place)
            self._places[0].set()
        try:
            while not place.wait(max(patience.left_seconds, 0.001)):
                patience.poll()
            yield
        finally:
            with self._lock:
                self._places.remove(place)
                if self._places:
                    self._places[0].set()


@contextmanager
def _held(lock: "threading.RLock | threading.Semaphore", patience: Patience) -> Iterator[None]:
    while not lock.acquire(timeout=max(patience.left_seconds, 0.001)):
        patience.poll()
    try:
        yield
    finally:
        lock.release()
