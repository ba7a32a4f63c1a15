"""Work. Looks, before rows of files become a table's, whether a key is NULL or comes twice.

Only the key's columns are read. Equal keys have equal hashes: these are kept, in files of the machine where they are
many, and what shares a hash is read again and compared. Memory does not grow with the rows.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.model.schema import Column
from lakelib.rows.convert import python_rows
from lakelib.rows.hash import key_hashes
from lakelib.work.parallel import stream_as_ready
from lakelib.work.source_rows import FilePart, FileRows, uniform_rows

Hashes = npt.NDArray[np.uint64]

_IN_MEMORY_ROWS = 16 * 1024 * 1024
_SHARES = 256
"""Hashes are dealt out by their first byte: several threads sort a share each, and small ones are sorted faster."""
_SLOTS = 1 << 18
"""Of a share's hashes in memory, 65,536, one in five has a slot with another. They fit into a processor's cache."""
_SUSPECTS = 10_000
"""So many hashes that come more than once are looked into at a time."""
_SHOWN = 3


Key = dict[str, Any]
"""The values of a key's columns and its partition's, by name."""


def find_repeated(
    source: FileRows, key: Sequence[Column], partition_by: Sequence[Column], threads: int
) -> tuple[Key, ...]:
    """Some of the keys that come more than once in their partition. Raises InvalidInputError, naming file and row, for
    one that is NULL."""
    columns = tuple({column.id: column for column in (*partition_by, *key)}.values())
    with _HashStore() as store:
        for shares in stream_as_ready(source.whole_files, lambda part: _hashed(source, part, columns), threads):
            store.add(shares)
        for suspects in store.suspects(threads):
            repeated = _repeated(source, columns, suspects, threads)
            if repeated:
                return repeated
    return ()


def _hashed(source: FileRows, part: FilePart, columns: Sequence[Column]) -> Iterator[list[Hashes]]:
    for batch in uniform_rows(source, columns, [part]):
        yield _dealt(key_hashes(batch.columns))


def _dealt(hashes: Hashes) -> list[Hashes]:
    """By their first byte."""
    first = (hashes >> np.uint64(56)).astype(np.uint8)
    order = np.argsort(first, kind="stable")
    ends = np.cumsum(np.bincount(first, minlength=_SHARES))
    return np.split(hashes[order], ends[:-1])


def _repeated(source: FileRows, columns: Sequence[Column], suspects: Hashes, threads: int) -> tuple[Key, ...]:
    """Keys that come twice, of those that have these hashes."""

    def suspected(part: FilePart) -> Iterator[pa.RecordBatch]:
        for batch in uniform_rows(source, columns, [part]):
            found = np.isin(key_hashes(batch.columns), suspects)
            if found.any():
                yield batch.filter(pa.array(found))

    rows = pa.Table.from_batches(list(stream_as_ready(source.whole_files, suspected, threads)))
    names = [column.name for column in columns]
    counted = rows.group_by(names).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted.column("count_all"), 1)).select(names)
    return tuple(python_rows(twice.slice(0, _SHOWN)))


class _HashStore:
    """Hashes of all rows, of which those that come more than once are wanted."""

    def __init__(self) -> None:
        self._near: list[list[Hashes]] = [[] for _ in range(_SHARES)]
        self._near_rows = 0
        self._far: list[IO[bytes]] = []
        self._files = ExitStack()

    def __enter__(self) -> "_HashStore":
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, shares: list[Hashes]) -> None:
        for near, share in zip(self._near, shares, strict=True):
            near.append(share)
        self._near_rows += sum(map(len, shares))
        if self._near_rows > _IN_MEMORY_ROWS:
            self._put_far()

    def _put_far(self) -> None:
        if not self._far:
            self._far = [self._files.enter_context(_scratch_file()) for _ in range(_SHARES)]
        for near, file in zip(self._near, self._far, strict=True):
            np.concatenate(near).tofile(file)
            near.clear()
        self._near_rows = 0

    def suspects(self, threads: int) -> Iterator[Hashes]:
        """Hashes that come more than once, some at a time."""
        return stream_as_ready(range(_SHARES), self._suspects_of, threads)

    def _suspects_of(self, number: int) -> Iterator[Hashes]:
        shares = [np.empty(0, np.uint64), *self._near[number]]
        if self._far:
            self._far[number].seek(0)
            shares.append(np.fromfile(self._far[number], np.uint64))
        return _twice(np.concatenate(shares))


def _scratch_file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _twice(hashes: Hashes) -> Iterator[Hashes]:
    hashes = np.sort(_sharing(hashes))
    found = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    for start in range(0, len(found), _SUSPECTS):
        yield found[start : start + _SUSPECTS]


def _sharing(hashes: Hashes) -> Hashes:
    """Those that share a slot with another: few, so that few have to be sorted. Equal ones do."""
    slots = (hashes % np.uint64(_SLOTS)).view(np.int64)
    last = np.empty(_SLOTS, np.int64)
    rows = np.arange(len(hashes))
    last[slots] = rows
    are_shared = np.zeros(_SLOTS, np.bool_)
    are_shared[slots[last[slots] != rows]] = True
    sharing: Hashes = hashes[are_shared[slots]]
    return sharing
