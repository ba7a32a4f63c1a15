"""Work. Says of each row of a partition's files from which snapshot on nobody sees it, for tables without a sequence of
their own: of a key the row of the next run supersedes it."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.model.files import DataFile, Split
from lakelib.model.schema import OP_COLUMN
from lakelib.rows.buffers import fixed_values, whole_array
from lakelib.storage.filesystem import Storage
from lakelib.storage.parquet import open_file
from lakelib.storage.vectors import encode_positions
from lakelib.work.masks import PLACE, MaskWork, open_runs
from lakelib.work.read import ReadTarget

_NEVER = np.iinfo(np.int64).max

Snapshots = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """From which snapshot on the rows of each file are masked, in the order of the file."""

    files: dict[int, DataFile]
    since: dict[int, Snapshots]

    def changed_at(self, snapshot_id: int) -> list[DataFile]:
        """The files of which rows are masked from this snapshot on."""
        return [self.files[file_id] for file_id, since in self.since.items() if (since == snapshot_id).any()]

    def vector(self, file_id: int, snapshot_id: int) -> tuple[bytes, int] | None:
        """The positions that are masked as of a snapshot, and how many; None for none."""
        places = np.flatnonzero(self.since[file_id] <= snapshot_id)
        return (encode_positions(places), len(places)) if len(places) else None


def find_marks(storage: Storage, location: str, file: DataFile) -> npt.NDArray[np.int64]:
    """The places of a file's rows that are no rows to a reader."""
    reader = open_file(storage, location, file.path, file.size_bytes)
    ops = reader.read_row_groups(range(reader.row_group_count), [OP_COLUMN]).column(OP_COLUMN)
    return np.flatnonzero(fixed_values(whole_array(ops), "i1") & 1)


def find_superseded(storage: Storage, target: ReadTarget, split: Split) -> Superseded:
    """Of a partition from whose files none goes. `files` run from oldest to newest, by sequence and run."""
    work = MaskWork(target=target, split=split, fresh_ids=None)
    runs = [pa.concat_tables(list(run)) for run in open_runs(storage, work)]
    names = [column.name for column in target.primary_key]
    rows = pa.concat_tables([run.select([*names, PLACE]) for run in runs])
    ends = np.cumsum([file.row_count for file in split.files])
    added = np.repeat(
        np.array([file.added_snapshot or 0 for file in split.files], np.int64),
        [file.row_count for file in split.files],
    )
    since = np.full(len(added), _NEVER, np.int64)
    # Rows are counted from the oldest file to the newest: of a key the next place supersedes the one before.
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in (*names, PLACE)])
    ordered = rows.take(order)
    places = fixed_values(whole_array(ordered.column(PLACE)), "<i8")
    if len(places) > 1:
        same = _are_alike([ordered.column(name) for name in names])
        older, newer = places[:-1][same], places[1:][same]
        since[older] = np.maximum(added[older], added[newer])
    for run in runs:
        if OP_COLUMN in run.column_names:
            is_mark = fixed_values(whole_array(run.column(OP_COLUMN)), "i1") != 0
            marks = fixed_values(whole_array(run.column(PLACE)), "<i8")[is_mark]
            since[marks] = added[marks]
    parts = np.split(since, ends[:-1])
    return Superseded(
        files={file.id: file for file in split.files},
        since={file.id: part for file, part in zip(split.files, parts, strict=True)},
    )


def _are_alike(columns: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.bool_]:
    """Whether each row has the key of the one before it."""
    alike = None
    for column in columns:
        whole = whole_array(column)
        equal = pc.equal(whole.slice(1), whole.slice(0, len(whole) - 1)).to_numpy(zero_copy_only=False)
        alike = equal if alike is None else alike & equal
    assert alike is not None
    return np.asarray(alike, np.bool_)
