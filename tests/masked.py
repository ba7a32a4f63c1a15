"""What a reader sees who knows nothing of keys: a snapshot's files as they are, without the rows that masks name."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakelib import Lake, Table
from lakelib.catalog import tables
from lakelib.model.files import Mask
from lakelib.model.schema import COMMIT_COLUMN
from lakelib.ops.masks import load_vector, masks_at
from lakelib.ops.read import ScanRequest, plan_scan
from lakelib.storage.vectors import decode_positions

_FIELD_ID = b"PARQUET:field_id"


def masks_of(lake: Lake, table: Table, at: int) -> Mapping[int, Mask]:
    return masks_at(lake.runtime, tables.load_table(lake.runtime.catalog, table._ref), at)


def unmasked_rows(lake: Lake, table: Table, at: int, column_ids: Sequence[int]) -> Counter[tuple[Any, ...]]:
    """Of each row the columns of these ids and its commit, and how often it is there."""
    loaded = tables.load_table(lake.runtime.catalog, table._ref)
    masks = masks_at(lake.runtime, loaded, at)
    plan = plan_scan(lake.runtime, loaded, ScanRequest(at=at))
    found: Counter[tuple[Any, ...]] = Counter()
    for file in {file.id: file for split in plan.splits for file in split.files}.values():
        with lake.runtime.storage.at(loaded.location).open_input(file.path) as stream:
            rows = pq.read_table(stream)
        if file.id in masks:
            positions = decode_positions(load_vector(lake.runtime, loaded, masks[file.id]))
            assert masks[file.id].cardinality == len(positions) > 0
            rows = rows.take(pa.array(np.setdiff1d(np.arange(rows.num_rows), positions)))
        commits = rows.column(COMMIT_COLUMN).fill_null(file.sequence)
        found.update(zip(*(column.to_pylist() for column in (*_by_ids(rows, column_ids), commits)), strict=True))
    return found


def _by_ids(rows: pa.Table, column_ids: Sequence[int]) -> list[pa.ChunkedArray]:
    ids = {int((field.metadata or {}).get(_FIELD_ID, 0)): place for place, field in enumerate(rows.schema)}
    return [rows.column(ids[each]) for each in column_ids]


def seen_rows(table: Table, at: int, names: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """The same by a scan, of the columns of these names."""
    rows = table.scan(columns=[*names, COMMIT_COLUMN], at=at).to_arrow()
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
