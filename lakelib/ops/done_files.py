"""Part of two use cases, mark done and publish: the `_SUCCESS` file of a partition follows its mark in the catalog.

Whoever acts on the file looks at the mark again afterwards, and acts again if it has changed: whoever comes last, file
and mark agree in the end. A process that dies in between leaves a mark that tells what is still to be deleted.
"""

import logging
from collections.abc import Collection

from lakelib.catalog import done
from lakelib.errors import LakeError
from lakelib.interop.success_file import delete_success_file, write_success_file
from lakelib.ops.runtime import Runtime

_LOG = logging.getLogger(__name__)


def sweep(runtime: Runtime) -> int:
    """Deletes what publishers have left behind, and the files of tables that were dropped; how many there were."""
    done.reset_dropped(runtime.catalog)
    return _delete_outdated(runtime, None)


def after_reset(runtime: Runtime, table_ids: Collection[int]) -> None:
    """Deletes the files of marks that a publish has reset. The publish stands whatever becomes of this."""
    for table_id in sorted(table_ids):
        try:
            _delete_outdated(runtime, table_id)
        except LakeError as error:
            _LOG.warning("the _SUCCESS files of partitions that got other rows are still there: %s", error)


def _delete_outdated(runtime: Runtime, table_id: int | None) -> int:
    """Those of one table, or of all of this warehouse. What cannot be deleted is left for the next time."""
    outdated = done.list_outdated_files(runtime.catalog, table_id)
    for owner_id, partition_id in outdated:
        if table_id is None and not runtime.storage.holds(
            done.load_mark(runtime.catalog, owner_id, partition_id).location
        ):
            continue
        try:
            settle_file(runtime, owner_id, partition_id)
        except LakeError as error:
            _LOG.warning("the _SUCCESS file of a partition that got other rows is still there: %s", error)
    return len(outdated)


def settle_file(runtime: Runtime, table_id: int, partition_id: int) -> done.Mark:
    """The partition's file is there if its mark stands, and is not if it was reset. Gives the mark.

    A file that was written just after another one's deletion is deleted as well: no mark tells of it any more.
    """
    mark = done.load_mark(runtime.catalog, table_id, partition_id)
    if not mark.success_file:
        return mark
    while True:
        if mark.success_file and mark.reset_at is None:
            write_success_file(
                runtime.storage, mark.location, mark.path, created_at=mark.created_at, modified_at=mark.modified_at
            )
        else:
            delete_success_file(runtime.storage, mark.location, mark.path)
            if done.forget_success_file(runtime.catalog, mark):
                return done.load_mark(runtime.catalog, table_id, partition_id)
        now = done.load_mark(runtime.catalog, table_id, partition_id)
        if now == mark:
            return mark
        mark = now
