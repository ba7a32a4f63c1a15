"""Work. Which files may have one of a few keys, as far as that is known without reading their rows.

Of files with few rows this process remembers hashes of the keys, of others the Bloom filters that they have. That is no
index: files never change and no name is used twice, so what was seen of one holds for good, and what is not remembered
is read.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.model.files import DataFile
from lakelib.model.predicate import Predicate
from lakelib.model.schema import Column
from lakelib.plan.prune import Bounds, may_match
from lakelib.rows.align import plan_file_alignment
from lakelib.rows.hash import key_hashes
from lakelib.storage.file_cache import FileCache
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import open_file
from lakelib.work.parallel import collect_in_order
from lakelib.work.read import ReadTarget, may_hold_values
from lakelib.work.small_files import open_alike

_Hashes = npt.NDArray[np.uint32]

_FEW_ROWS = 16_384
"""Of files with more rows hashes would take more memory than Bloom filters do."""
_KEPT_BYTES = 64 * 1024 * 1024
_ENTRY_BYTES = 500
"""What an entry takes beside its hashes."""
_READ_AT_ONCE = 32

_known: FileCache[_Hashes] = FileCache(_KEPT_BYTES)


def files_with_keys(
    storage: Storage,
    target: ReadTarget,
    files: Sequence[DataFile],
    keys: Sequence[pa.Array],
    like: Predicate,
    threads: int,
) -> frozenset[int]:
    """The ids of the files that may have one of the keys, given column by column; `like` is what those are like in
    their first column, of which there are few values."""
    few = [file for file in files if file.row_count <= _FEW_ROWS]
    many = [file for file in files if file.row_count > _FEW_ROWS]
    found = _few_with_keys(storage, target, few, np.unique(_hashes(keys)), threads)
    first, values = target.primary_key[0], keys[0]

    def look(some: Sequence[DataFile]) -> Iterator[int]:
        return (file.id for file in some if _may_have(storage, target, file, first, values, like))

    return frozenset((*found, *collect_in_order(_batches(many), look, threads)))


def _few_with_keys(
    storage: Storage, target: ReadTarget, files: Sequence[DataFile], sought: _Hashes, threads: int
) -> list[int]:
    root = storage.at(target.location)
    what = tuple((column.id, column.type) for column in target.primary_key)
    hashes = {file.path: _known.find((root, file.path, what)) for file in files}

    def read(some: Sequence[DataFile]) -> Iterator[tuple[str, _Hashes]]:
        for path, found in _read_hashes(storage, target, some):
            _known.keep((root, path, what), found, found.nbytes + _ENTRY_BYTES)
            yield path, found

    unknown = [file for file in files if hashes[file.path] is None]
    hashes |= dict(collect_in_order(_batches(unknown), read, threads))
    return [file.id for file in files if _have_some(hashes[file.path], sought)]


def _read_hashes(storage: Storage, target: ReadTarget, files: Sequence[DataFile]) -> Iterator[tuple[str, _Hashes]]:
    """In rising order, by path."""
    for alike in open_alike(storage, target.location, files):
        alignment = plan_file_alignment(target.schemas[alike.schema_id], list(target.primary_key))
        rows = alignment.apply(alike.read(alignment.file_columns))
        hashes = _hashes([rows.column(column.name) for column in target.primary_key])
        start = 0
        for file in alike.files:
            yield file.path, np.sort(hashes[start : start + file.row_count])
            start += file.row_count


def _hashes(columns: Sequence[pa.Array | pa.ChunkedArray]) -> _Hashes:
    """The lower half of each: the upper one is what a bucket's keys have in common."""
    return key_hashes(columns).astype(np.uint32)


def _have_some(hashes: _Hashes | None, sought: _Hashes) -> bool:
    assert hashes is not None, "it was read"
    if not len(hashes):
        return False
    places = np.minimum(np.searchsorted(hashes, sought), len(hashes) - 1)
    return bool((hashes[places] == sought).any())


def _may_have(
    storage: Storage, target: ReadTarget, file: DataFile, first: Column, values: pa.Array, like: Predicate
) -> bool:
    """By the bounds and Bloom filters of its row groups."""
    stored = target.schemas[file.schema_id]
    kept = stored.by_id(first.id)
    if kept is None or kept.type != first.type:
        return True
    with open_file(storage, target.location, file.path, file.size_bytes) as reader:

        def may_have(row_group: int) -> bool:
            def bounds(_: Column) -> Bounds:
                return reader.row_group_bounds(row_group, kept.name, kept.type)

            return may_match(like, bounds) and may_hold_values(reader, stored, row_group, first, values)

        return any(map(may_have, range(reader.row_group_count)))


def _batches(files: Sequence[DataFile]) -> list[Sequence[DataFile]]:
    return [files[start : start + _READ_AT_ONCE] for start in range(0, len(files), _READ_AT_ONCE)]
