"""Masks as this process has seen them last: who reads again by the same files asks nobody."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock

from lakelib.model.files import DataFile, Split
from lakelib.storage.vectors import Positions

_MOST_BYTES = 64_000_000

What = tuple[tuple[str, int | None, int], ...]
"""Files in their order. Which of their rows are seen is in them alone: names are never used twice."""


def what_of(splits: Sequence[Split]) -> What:
    """Of all files of a partition."""
    files: dict[str, DataFile] = {file.path: file for split in splits for file in split.files}
    return tuple((path, file.sequence, file.run) for path, file in sorted(files.items()))


class KnownMasks:
    """The positions of masked rows by path, of partitions by their files. Safe to use from many threads, and in a
    forked child."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._size_bytes = 0
        self._known: OrderedDict[What, Mapping[str, Positions]] = OrderedDict()
        self._lock = Lock()

    def recall(self, what: What) -> Mapping[str, Positions] | None:
        with self._lock:
            found = self._known.get(what)
            if found is not None:
                self._known.move_to_end(what)
            return found

    def remember(self, what: What, masks: Mapping[str, Positions]) -> None:
        if _size(what, masks) > self._most_bytes:
            return
        with self._lock:
            before = self._known.pop(what, None)
            self._size_bytes += _size(what, masks) - (0 if before is None else _size(what, before))
            self._known[what] = masks
            while self._size_bytes > self._most_bytes:
                self._size_bytes -= _size(*self._known.popitem(last=False))


def _size(what: What, masks: Mapping[str, Positions]) -> int:
    """Names take room, too."""
    return 200 * len(what) + sum(positions.nbytes for positions in masks.values())
