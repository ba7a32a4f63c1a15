"""Pure. Hands the rows whose keys come more than once to a merge engine; all others stay where they are."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelib.model.schema import OP_COLUMN
from lakelib.rows.buffers import array_of_mask, array_of_numbers, fixed_values, whole_array
from lakelib.rows.keys import Rows
from lakelib.rows.merge_engine import Engine
from lakelib.rows.types import hidden_field
from lakelib.rows.versions import Versions

Mask = npt.NDArray[np.bool_]
Parts = list[tuple[pa.Table, Mask | None]]


def fold_repeated(tables: Sequence[pa.Table], repeated: Rows, starts: Rows, engine: Engine) -> Parts:
    """The tables, and which of their rows stay (None: all), and after them the rows that were made. `repeated` are the
    rows, counted through all tables, of keys that come more than once, those of a key together, the oldest first."""
    if not len(repeated):
        return [(table, None) for table in tables]
    lengths = [table.num_rows for table in tables]
    kept = np.ones(sum(lengths), np.bool_)
    kept[repeated] = False
    chosen = _chosen(tables, kept, repeated, starts, engine)
    if chosen is not None:
        kept[repeated[chosen]] = True
    parts = [
        (table, None if mask.all() else mask)
        for table, mask in zip(tables, np.split(kept, np.cumsum(lengths)[:-1]), strict=True)
    ]
    if chosen is not None:
        return parts
    versions = Versions(rows=_taken(tables, ~kept, repeated), starts=starts)
    return [*parts, (engine.fold(versions), None)]


def _chosen(tables: Sequence[pa.Table], kept: Mask, repeated: Rows, starts: Rows, engine: Engine) -> Rows | None:
    """Of each key the version that is the row as it stands; None where rows have to be made. Looks at no other columns
    than those that tell."""
    if engine.chosen_by is None:
        return None
    names = list(engine.chosen_by)
    if any(OP_COLUMN in table.column_names for table in tables):
        tables = [table if OP_COLUMN in table.column_names else with_zeros(table) for table in tables]
        names.append(OP_COLUMN)
    if names:
        rows = _taken([table.select(names) for table in tables], ~kept, repeated)
    else:
        rows = pa.table({OP_COLUMN: _zeros(len(repeated))})
    return engine.chosen(Versions(rows=rows, starts=starts))


def _taken(tables: Sequence[pa.Table], mask: Mask, rows: Rows) -> pa.Table:
    """The rows of the mask, in the order of `rows`. Tables without `_op` delete nothing."""
    masks = np.split(mask, np.cumsum([table.num_rows for table in tables])[:-1])
    own = [table.filter(array_of_mask(part)) for table, part in zip(tables, masks, strict=True) if part.any()]
    if any(OP_COLUMN in table.column_names for table in own):
        own = [with_op(table) for table in own]
    ascending = np.flatnonzero(mask)
    together = pa.concat_tables(own, promote_options="default").combine_chunks()
    return together.take(array_of_numbers(np.searchsorted(ascending, rows)))


def with_op(rows: pa.Table) -> pa.Table:
    """With `_op`, whether the files had it or not."""
    return rows if OP_COLUMN in rows.column_names else with_zeros(rows)


def with_zeros(rows: pa.Table) -> pa.Table:
    """Rows of a file without delete marks, with a column that says so."""
    return rows.append_column(hidden_field(OP_COLUMN), _zeros(rows.num_rows))


def _zeros(count: int) -> pa.Array:
    return array_of_numbers(np.zeros(count, np.int8))


def live_rows(rows: pa.Table) -> Mask | None:
    """Which rows readers see; None for all."""
    if OP_COLUMN not in rows.column_names:
        return None
    ops = fixed_values(whole_array(rows.column(OP_COLUMN)), "i1")
    live: Mask = ops & 1 == 0
    return live
