"""Use case: whoever has published tells others of it: the Delta log, and DuckLake's views. The publish stands whatever
becomes of this."""

import logging
from collections.abc import Callable
from dataclasses import replace

from lakelib.catalog import exports, tables
from lakelib.catalog.roles import has_right
from lakelib.errors import LakeError
from lakelib.model.roles import Right
from lakelib.model.table import Snapshot, TableInfo, TableRef
from lakelib.ops import delta
from lakelib.ops.ducklake import show_snapshots
from lakelib.ops.runtime import Runtime

_LOG = logging.getLogger(__name__)
_MOST_AFTER_PUBLISH = 20
"""Whoever publishes tells of so many snapshots; where others are further behind, the rest is for a catch-up."""


def after_publish(runtime: Runtime, table_id: int, snapshot: Snapshot, table: TableInfo | None = None) -> None:
    """Tells of a snapshot that this process has published, as the table's options say."""
    if snapshot.replayed:
        return
    _try(
        f"snapshot {snapshot.id} is not told of yet",
        lambda: _tell(runtime, table or _look_up(runtime, table_id), snapshot),
    )


def _tell(runtime: Runtime, table: TableInfo, snapshot: Snapshot) -> None:
    if table.options.delta:
        _try(
            f"snapshot {snapshot.id} is not in the Delta log yet (`lake delta {table.full_name}` makes up for it)",
            lambda: delta.tell_log(runtime, table, snapshot, _MOST_AFTER_PUBLISH),
        )
    if table.options.ducklake and table.primary_key_ids:
        _try(
            f"snapshot {snapshot.id} is not shown to DuckDB yet (`lake ducklake {table.full_name}` makes up for it)",
            lambda: _show(runtime, table, snapshot),
        )


def _try(otherwise: str, work: Callable[[], str | None]) -> None:
    """The work may say why it was not done."""
    try:
        reason = work()
    except LakeError as error:
        reason = str(error)
    except Exception:  # whatever it is, the rows are published
        _LOG.warning("%s", otherwise, exc_info=True)
        return
    if reason:
        _LOG.warning("%s: %s", otherwise, reason)


def _look_up(runtime: Runtime, table_id: int) -> TableInfo:
    table = runtime.known.look_up(table_id)
    if table is None:
        table = tables.load_table(runtime.catalog, TableRef(id=table_id, full_name=f"table {table_id}"))
        runtime.known.remember(table)
    return table


def _show(runtime: Runtime, table: TableInfo, snapshot: Snapshot) -> str | None:
    """Whoever may not maintain leaves it to those who may."""
    if not has_right(runtime.catalog, Right.MAINTAIN):
        return None
    now = replace(table, head_id=snapshot.id)
    unshown = [each for each in exports.list_unshown(runtime.catalog, table.id) if each <= snapshot.id]
    show_snapshots(runtime, now, unshown[:_MOST_AFTER_PUBLISH])
    left = unshown[_MOST_AFTER_PUBLISH:]
    return f"{len(left)} snapshots of {table.full_name} wait to be shown" if left else None
