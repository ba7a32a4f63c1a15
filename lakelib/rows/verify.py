"""Pure. Says where the rows of a file are not what its catalog entry promises, as they come, part by part."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile, PartitionKey
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN, Column
from lakelib.model.sortable import encode, is_sortable
from lakelib.rows.buffers import whole_array
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.keys import open_columns
from lakelib.rows.sort import Ranking
from lakelib.rows.values import raw_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What the catalog says of a file. Columns are those of the file's own schema version."""

    file: DataFile
    columns: tuple[Column, ...]
    primary_key: tuple[Column, ...]
    partition_by: tuple[Column, ...]
    partition_key: PartitionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A promise that is not kept: a stable kind and a sentence."""

    kind: str
    detail: str


class Verifier:
    """Looks at a file's rows in their order. Each kind of breach is told once."""

    def __init__(self, promise: Promise) -> None:
        self._promise = promise
        self._found: dict[str, Breach] = {}
        self._row_count = self._delete_count = 0
        self._nulls: dict[int, int] = {}
        self._last_key: list[pa.Array] | None = None

    def look(self, rows: pa.Table) -> None:
        """The next rows. Text that is no UTF-8 is told and keeps the rest of these rows from being looked at."""
        self._row_count += rows.num_rows
        if not rows.num_rows:
            return
        try:
            rows.validate(full=True)
        except pa.ArrowInvalid as error:
            self._tell("invalid_text", str(error).splitlines()[0])
            return
        self._look_at_columns(rows)
        self._look_at_keys(rows)
        self._look_at_commits(rows)
        if OP_COLUMN in rows.column_names:
            self._delete_count += int(np.count_nonzero(np.asarray(whole_array(rows.column(OP_COLUMN)))))

    def finish(self) -> tuple[Breach, ...]:
        """All that was found."""
        file = self._promise.file
        if self._row_count != file.row_count:
            self._tell("wrong_rows", f"it has {self._row_count:,} rows, and the catalog knows {file.row_count:,}")
        elif self._delete_count != file.delete_count and "invalid_text" not in self._found:
            self._tell(
                "wrong_rows", f"it has {self._delete_count:,} delete marks, and the catalog knows {file.delete_count:,}"
            )
        if "invalid_text" not in self._found:
            self._compare_nulls()
        return tuple(self._found.values())

    def _tell(self, kind: str, detail: str) -> None:
        self._found.setdefault(kind, Breach(kind=kind, detail=detail))

    def _look_at_columns(self, rows: pa.Table) -> None:
        bounds = self._promise.file.bounds
        for column in self._promise.columns:
            place = column.id - 1
            if column.name not in rows.column_names or not is_sortable(column.type):
                continue
            values = rows.column(column.name)
            self._nulls[place] = self._nulls.get(place, 0) + values.null_count
            lower = bounds.lower[place] if place < len(bounds.lower) else None
            upper = bounds.upper[place] if place < len(bounds.upper) else None
            if lower is not None or upper is not None:
                self._compare_bounds(column, values, lower, upper)

    def _compare_bounds(
        self, column: Column, values: pa.ChunkedArray, lower: bytes | None, upper: bytes | None
    ) -> None:
        for encoded in _extremes(column.type, values):
            if (lower is not None and encoded < lower) or (upper is not None and encoded > upper):
                self._tell("wrong_bounds", f"column {column.name!r} holds values outside of the bounds in the catalog")

    def _compare_nulls(self) -> None:
        known = self._promise.file.bounds.null_counts
        for column in self._promise.columns:
            place = column.id - 1
            stated = known[place] if place < len(known) else None
            found = self._nulls.get(place)
            if stated is not None and found is not None and stated != found:
                self._tell("wrong_bounds", f"column {column.name!r} has {found:,} nulls, the catalog knows {stated:,}")

    def _look_at_keys(self, rows: pa.Table) -> None:
        self._compare_partition(rows)
        if not self._promise.primary_key:
            return
        keys = [whole_array(rows.column(column.name)) for column in self._promise.primary_key]
        if any(key.null_count for key in keys):
            self._tell("wrong_order", "a key is null")
            return
        file = self._promise.file
        if not np.all(hash_prefixes(key_hashes(keys), file.depth) == file.prefix):
            self._tell("wrong_bucket", f"it holds keys outside of prefix {file.prefix} at depth {file.depth}")
        joined = keys
        if self._last_key is not None:
            joined = [pa.concat_arrays([last, key]) for last, key in zip(self._last_key, keys, strict=True)]
        if not _rises(joined):
            self._tell("wrong_order", "its keys do not rise: a key comes twice, or after a larger one")
        self._last_key = [key.slice(len(key) - 1) for key in keys]

    def _compare_partition(self, rows: pa.Table) -> None:
        for column, expected in zip(self._promise.partition_by, self._promise.partition_key, strict=True):
            found = raw_values(whole_array(pc.unique(rows.column(column.name))))
            if any((None if raw is None else encode(column.type, raw)) != expected for raw in found):
                self._tell("wrong_partition", f"column {column.name!r} holds values of another partition")

    def _look_at_commits(self, rows: pa.Table) -> None:
        file = self._promise.file
        if COMMIT_COLUMN not in rows.column_names or file.added_snapshot is None:
            return
        commits = rows.column(COMMIT_COLUMN)
        if file.sequence is not None and file.sequence < file.added_snapshot and commits.null_count:
            self._tell("wrong_commit", f"{commits.null_count:,} of its rows do not say which commit they are of")
        newest = pc.max(commits).as_py()
        if newest is not None and newest > file.added_snapshot:
            self._tell("wrong_commit", f"a row is of snapshot {newest}, and the file came with {file.added_snapshot}")


def _rises(keys: Sequence[pa.Array]) -> bool:
    """Whether each key is larger than the one before."""
    count = len(keys[0])
    ranking = Ranking(count)
    ranking.sort_by(open_columns([[key] for key in keys]))
    return not len(ranking.tied) and bool(np.array_equal(ranking.order, np.arange(count)))


def _extremes(type_text: str, values: pa.ChunkedArray) -> Iterator[bytes]:
    """The encodings of the least and the greatest value; floats that are no numbers are left out."""
    found: Mapping[str, pa.Scalar] = pc.min_max(values)
    for name in ("min", "max"):
        if found[name].is_valid:
            raw = raw_values(pa.array([found[name]], values.type))[0]
            if raw is not None:
                yield encode(type_text, raw)
