"""Storage. What a process has learned of files, kept up to a size in memory."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class FileCache(Generic[Kept]):
    """What was found out last about files. Safe for threads.

    Files never change, so an entry is never stale.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._size_bytes = 0
        self._kept: OrderedDict[object, tuple[Kept, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: object) -> Kept | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: object, kept: Kept, size_bytes: int) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = kept, size_bytes
            self._size_bytes += size_bytes
            while self._size_bytes > self._capacity_bytes:
                _, (_, oldest_bytes) = self._kept.popitem(last=False)
                self._size_bytes -= oldest_bytes

    def __len__(self) -> int:
        return len(self._kept)
