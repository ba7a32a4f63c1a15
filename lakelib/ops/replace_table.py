"""Use case: create or replace. A table of that name is there afterwards, with these columns and no rows.

Where there was one it is the same table: its rows go and its columns become the new ones in one snapshot, so that its
history is read as before, by id, tag and moment. What it is keyed, partitioned and ordered by stays, for its older
snapshots are read by that: a table that is to have others is another one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lakelib.catalog import tables
from lakelib.errors import InvalidInputError
from lakelib.model.options import parse_options
from lakelib.model.schema import Column
from lakelib.model.table import TableInfo
from lakelib.ops.commit import commit_work
from lakelib.ops.create import create_defined, define_table, find_table, gated, split_name, table_exists
from lakelib.ops.evolve import set_options
from lakelib.ops.overwrite import emptying_work
from lakelib.ops.patience import MOST_CHANGES, Overtaken, do_again
from lakelib.ops.rebucket import rebucket
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.plan.declare import Declared


def create_or_replace(
    runtime: Runtime,
    full_name: str,
    schema: Any,
    *,
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    buckets: int | str | None,
    sequence_by: Sequence[str],
    merge: str | Mapping[str, Any],
    options: Mapping[str, Any],
) -> TableInfo:
    """The table. Options and buckets that are given are set, once it is replaced; others stay. Raises InvalidInputError
    for a wrong definition, or one whose key, partition or sequence columns are others than the table's."""
    namespace, name = split_name(full_name)
    new = define_table(
        runtime, namespace, name, schema, primary_key, partition_by, buckets, sequence_by, merge, parse_options(options)
    )
    wanted = tuple(
        Declared(name=each.name, type=each.type, nullable=each.nullable, comment=each.comment)
        for each in new.schema.columns
    )

    def attempt() -> TableInfo | Overtaken:
        there = tables.find_table(runtime.catalog, namespace, name)
        if there is not None:
            check_same(there, new)
            commit_work(runtime, there.ref, WriteRequest(becomes=wanted), emptying_work(runtime, wanted))
            return there
        made = create_defined(runtime, gated(runtime, new))
        return made if made.location == new.location else Overtaken(table_exists(full_name))

    table = do_again(attempt, most_tries=MOST_CHANGES)
    if options:
        set_options(runtime, table.ref, options)
    if buckets is not None:
        rebucket(runtime, table.ref, buckets, rewrite=False)
    return find_table(runtime, full_name)


def check_same(there: TableInfo, new: tables.NewTable) -> None:
    """Raises InvalidInputError for another key, partitioning, sequence or merge engine."""
    pairs = (
        ("primary_key", there.primary_key, new.primary_key_ids),
        ("partition_by", there.partition_by, new.partition_ids),
        ("sequence_by", there.sequence_by, new.sequence_ids),
    )
    wrong = [
        f"{what} is ({', '.join(_names(wanted))}), and the table's is ({', '.join(_names(columns))})"
        for what, columns, ids in pairs
        if _folded(wanted := new.schema.select(ids)) != _folded(columns)
    ]
    merges = new.merge.in_names(new.schema), there.merge.in_names(there.schema)
    if merges[0] != merges[1]:
        wrong.append(f"merge is {merges[0]!r}, and the table's is {merges[1]!r}")
    if wrong:
        raise InvalidInputError(
            f"Table {there.full_name} is there, and cannot become this one: {'; '.join(wrong)}.",
            kind="table_differs",
            remedy="Its snapshots are read by these, so they stay. Make a table of another name; or drop this one"
            " first, which ends its history.",
        )


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]


def _folded(columns: Sequence[Column]) -> list[str]:
    return [column.name.casefold() for column in columns]
