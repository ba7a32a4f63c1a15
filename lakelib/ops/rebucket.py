"""Use case: a table's keys go into another number of buckets, beside readers and writers.

Step by step: the catalog says so from now on, to whoever writes or compacts; where a number was asked for, files that
are not as deep as their size asks for by it are rewritten, as a compaction does that. A bucket is the keys whose hash
begins with the same bits, and each file says how many bits: files of the old layout and of the new one are right beside
each other, and so is what a writer stages by the old one meanwhile: the next compaction brings it in line.
"""

from typing import Any

from lakelib.catalog import tables
from lakelib.catalog.roles import require_right
from lakelib.errors import InvalidInputError, RetryableError
from lakelib.model.predicate import Predicate
from lakelib.model.roles import Right
from lakelib.model.table import TableInfo, TableRef
from lakelib.model.upkeep import CompactionResult
from lakelib.ops.compact import Tell, compact, partition_predicate
from lakelib.ops.create import parse_buckets
from lakelib.ops.patience import MOST_CHANGES, Overtaken, do_again
from lakelib.ops.runtime import Runtime


def rebucket(
    runtime: Runtime,
    ref: TableRef,
    buckets: int | str,
    *,
    rewrite: bool = True,
    where: str | Predicate | None = None,
    session: Any = None,
    tell: Tell | None = None,
) -> CompactionResult:
    """What was rewritten, of the partitions where `where` is TRUE; nothing for "dynamic" and "postpone", with which
    compactions go by size, nor without `rewrite`. Safe to repeat: it goes on where it was interrupted.

    Raises InvalidInputError, before anything is changed, for what is no number of buckets, or a table without a key.
    """
    require_right(runtime.catalog, Right.OWN)
    runtime.ownership.confirm()
    table = tables.load_table(runtime.catalog, ref)
    _check(table, buckets)
    partition_predicate(table, where)
    table = do_again(lambda: _say(runtime, ref, buckets), most_tries=MOST_CHANGES)
    runtime.known.forget(table.id)
    if table.buckets.fixed_depth is None or not rewrite:
        return CompactionResult(table=ref.full_name)
    return compact(runtime, ref, to_layout=True, where=where, session=session, tell=tell)


def _check(table: TableInfo, buckets: int | str) -> None:
    if not table.primary_key_ids:
        raise InvalidInputError(
            f"Table {table.full_name} has no primary key: its rows are in no buckets.",
            kind="no_primary_key",
            remedy="Its files are packed by compact().",
        )
    if buckets is None:
        raise InvalidInputError(
            "buckets is None.", kind="invalid_buckets", remedy='Give a power of two, "dynamic" or "postpone".'
        )
    parse_buckets(buckets, has_key=True)


def _say(runtime: Runtime, ref: TableRef, buckets: int | str) -> TableInfo | Overtaken:
    """The table, whose catalog says so; not so if somebody else has changed it since it was looked at."""
    table = tables.load_table(runtime.catalog, ref)
    wanted = parse_buckets(buckets, has_key=True)
    if wanted == table.buckets or tables.replace_buckets(runtime.catalog, table, wanted):
        return tables.load_table(runtime.catalog, ref)
    return Overtaken(
        RetryableError(
            f"The buckets of {ref.full_name} are being changed by others all the time.",
            kind="buckets_changed",
            remedy="Try again.",
        )
    )
