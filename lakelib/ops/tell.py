"""Use case: whoever has published tells others of it: the Delta log, and DuckLake's views. The publish stands whatever
becomes of this."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from lakelib.catalog import ducklake, tables
from lakelib.catalog.roles import has_right
from lakelib.errors import LakeError
from lakelib.model.roles import Right
from lakelib.model.table import Snapshot, TableInfo, TableRef
from lakelib.ops.delta import tell_log
from lakelib.ops.ducklake import show_snapshots
from lakelib.ops.runtime import Runtime

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")
_MOST_AFTER_PUBLISH = 20
"""Whoever publishes shows so many snapshots; where DuckLake's views are further behind, the rest is for a catch-up."""


def after_publish(runtime: Runtime, table_id: int, snapshot: Snapshot, table: TableInfo | None = None) -> None:
    """Tells of a snapshot that this process has published, as the table's options say."""
    if snapshot.replayed:
        return
    found = table or _try("told of", snapshot, lambda: _look_up(runtime, table_id))
    if found is None:
        return
    if found.options.delta:
        _try("in the Delta log", snapshot, lambda: tell_log(runtime, found, snapshot))
    if found.options.ducklake and found.primary_key_ids:
        _try("shown to DuckDB", snapshot, lambda: _show(runtime, found, snapshot))


def _try(what: str, snapshot: Snapshot, work: Callable[[], Result]) -> Result | None:
    try:
        return work()
    except LakeError as error:
        _LOG.warning("snapshot %s is not %s yet: %s", snapshot.id, what, error)
    except Exception:  # whatever it is, the rows are published
        _LOG.warning("snapshot %s is not %s yet", snapshot.id, what, exc_info=True)
    return None


def _look_up(runtime: Runtime, table_id: int) -> TableInfo:
    table = runtime.known.look_up(table_id)
    if table is None:
        table = tables.load_table(runtime.catalog, TableRef(id=table_id, full_name=f"table {table_id}"))
        runtime.known.remember(table)
    return table


def _show(runtime: Runtime, table: TableInfo, snapshot: Snapshot) -> None:
    """Whoever may not maintain leaves it to those who may."""
    if not has_right(runtime.catalog, Right.MAINTAIN):
        return
    now = replace(table, head_id=snapshot.id)
    unshown = [each for each in ducklake.list_unshown(runtime.catalog, table.id) if each <= snapshot.id]
    show_snapshots(runtime, now, unshown[:_MOST_AFTER_PUBLISH])
    if len(unshown) > _MOST_AFTER_PUBLISH:
        _LOG.warning("DuckDB does not see %s up to its head yet: `lake ducklake %s` goes on", *[table.full_name] * 2)
