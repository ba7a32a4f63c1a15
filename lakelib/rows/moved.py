"""Pure. Tells changes of several partitions as one: a key that has left one for another has changed."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.model.changes import CHANGE_COLUMN, DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, ChangeView
from lakelib.model.schema import COMMIT_COLUMN, OP_COLUMN
from lakelib.rows.alike import are_alike
from lakelib.rows.buffers import array_of_numbers, whole_array
from lakelib.rows.pairs import chosen, paired
from lakelib.rows.sort import newest_order


def unite_moves(told: pa.Table, view: ChangeView, key_names: Sequence[str], compared_names: Sequence[str]) -> pa.Table:
    """ "latest": of a key the row, or one delete. "net": its row before and afterwards, if they differ. "all": every
    delete of the commit before what takes its place."""
    match view:
        case ChangeView.LATEST:
            return _latest(told, key_names)
        case ChangeView.NET:
            return _net(told, key_names, compared_names)
        case ChangeView.ALL:
            order = np.argsort(~_are(told, OP_COLUMN, DELETE), kind="stable")
            return told.take(array_of_numbers(order))


def _latest(told: pa.Table, key_names: Sequence[str]) -> pa.Table:
    is_row = array_of_numbers((~_are(told, OP_COLUMN, DELETE)).astype(np.int64))
    order_by = [is_row, whole_array(pc.fill_null(told.column(COMMIT_COLUMN), 0))]
    return told.take(array_of_numbers(np.sort(newest_order(_keys(told, key_names), order_by))))


def _net(told: pa.Table, key_names: Sequence[str], compared_names: Sequence[str]) -> pa.Table:
    gone, came = (_by_key(told, word, key_names) for word in (DELETE, INSERT))
    gone_paired, came_paired = paired(_keys(gone, key_names), _keys(came, key_names))
    old, new = chosen(gone, gone_paired), chosen(came, came_paired)
    other = ~are_alike(old.select(list(compared_names)), new.select(list(compared_names)))
    stays = ~(_are(told, CHANGE_COLUMN, DELETE) | _are(told, CHANGE_COLUMN, INSERT))
    return pa.concat_tables(
        [
            chosen(told, stays),
            chosen(gone, ~gone_paired),
            _as(chosen(old, other), UPDATE_BEFORE),
            _as(chosen(new, other), UPDATE_AFTER),
            chosen(came, ~came_paired),
        ]
    )


def _by_key(told: pa.Table, word: str, key_names: Sequence[str]) -> pa.Table:
    rows = chosen(told, _are(told, CHANGE_COLUMN, word)).combine_chunks()
    return rows.take(array_of_numbers(newest_order(_keys(rows, key_names), [])))


def _keys(rows: pa.Table, names: Sequence[str]) -> list[pa.Array]:
    return [whole_array(rows.column(name)) for name in names]


def _are(told: pa.Table, column: str, word: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.asarray(pc.equal(told.column(column), word).to_numpy(), np.bool_)


def _as(rows: pa.Table, word: str) -> pa.Table:
    place = rows.column_names.index(CHANGE_COLUMN)
    return rows.set_column(place, rows.schema.field(place), pa.repeat(pa.scalar(word), rows.num_rows))
