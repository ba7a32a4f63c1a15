"""Part of use cases: the rows that a table has of given keys, found as a scan by key finds them."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.model.files import PartitionKey
from lakelib.model.predicate import And, In, Predicate
from lakelib.model.table import MAX_DEPTH, TableInfo
from lakelib.ops.read import ScanRequest, plan_scan, stream_batches
from lakelib.ops.runtime import Runtime
from lakelib.plan.partitions import in_any_partition
from lakelib.rows.arrange import arrange_rows
from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.values import raw_values

_KEYS_AT_ONCE = 10_000
"""So many keys are looked for together: one plan for all of them, and a file is opened once."""


def gather_keys(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same keys, in batches that are worth a search."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        for start in range(0, batch.num_rows, _KEYS_AT_ONCE):
            part = batch.slice(start, _KEYS_AT_ONCE)
            if sum(one.num_rows for one in waiting) + part.num_rows > _KEYS_AT_ONCE:
                yield pa.concat_batches(waiting)
                waiting = []
            waiting.append(part)
    if waiting:
        yield pa.concat_batches(waiting)


def find_rows(
    runtime: Runtime, table: TableInfo, keys: pa.RecordBatch, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The rows at the table's head that have one of the keys, each in its own partition, with the columns named.

    `keys` have the columns of the primary key and of the partition, and these are among the columns named.
    """
    asked = dict(_by_partition(table, keys))
    hashes = key_hashes([keys.column(column.name) for column in table.primary_key])
    request = ScanRequest(
        columns=tuple(names),
        where=_superset(table, keys, list(asked)),
        hash_prefixes=tuple(sorted(set(hash_prefixes(hashes, MAX_DEPTH).tolist()))),
    )
    key_names = [column.name for column in table.primary_key]
    for batch in stream_batches(runtime, plan_scan(runtime, table, request)):
        for partition_key, found in _by_partition(table, batch):
            if partition_key in asked:
                wanted = asked[partition_key].select(key_names)
                rows = found.join(wanted, keys=key_names, join_type="left semi")
                yield from rows.select(list(names)).to_batches()


def _by_partition(table: TableInfo, rows: pa.RecordBatch) -> Iterator[tuple[PartitionKey, pa.Table]]:
    for piece in arrange_rows(rows, table.partition_by, table.primary_key, 0):
        yield piece.partition_key, pa.Table.from_batches([piece.rows])


def _superset(table: TableInfo, keys: pa.RecordBatch, partition_keys: Sequence[PartitionKey]) -> Predicate:
    """Rows that have in each key column one of the values that occur there, in the partitions of the keys."""
    columns = (keys.column(column.name) for column in table.primary_key)
    parts: list[Predicate] = [
        In(column=column, values=tuple(raw for raw in raw_values(pc.unique(values)) if raw is not None))
        for column, values in zip(table.primary_key, columns, strict=True)
    ]
    here = in_any_partition(table.partition_by, partition_keys) if table.partition_by else None
    return And(parts=(*parts, here) if here is not None else tuple(parts))
