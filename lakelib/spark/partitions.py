"""What a task of Spark's data source "lake" reads: rows of a snapshot, or changes. Plain values, without a catalog."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from lakelib.model.changes import CHANGE_COLUMN, INSERT, UPSERT, ChangeSplit
from lakelib.model.files import Split
from lakelib.storage.filesystem import Storage
from lakelib.work.changes import ChangeTarget
from lakelib.work.read import ReadTarget
from lakelib.work.spark.changes import Part, changes_of, deal_changes
from lakelib.work.spark.read import deal_parts
from lakelib.work.spark.tasks import ReadPart, read_parts

_SLOTS = 8
"""Spark does not tell a data source how many tasks it runs at once."""


class LakePartition(InputPartition):
    """What one task reads."""

    def __init__(self) -> None:
        super().__init__(None)

    def batches(self) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def rows(self, wanted: StructType) -> Iterator[pa.RecordBatch]:
        """Batches of exactly the schema that Spark was told, or that a user has said: columns may be NULL in it that
        cannot."""
        for batch in self.batches():
            fields = [batch.schema.field(each.name).with_nullable(each.nullable) for each in wanted]
            yield pa.RecordBatch.from_arrays([batch.column(each.name) for each in wanted], schema=pa.schema(fields))


class RowsPartition(LakePartition):
    """Rows of a snapshot; in a stream each says in a column that it came."""

    def __init__(
        self, storage: Storage, target: ReadTarget, parts: Sequence[ReadPart], told_in: str | None = None
    ) -> None:
        super().__init__()
        self.storage = storage
        self.target = target
        self.parts = parts
        self.told_in = told_in

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in read_parts(self.storage, self.target, self.parts):
            if self.told_in is None:
                yield batch
            else:
                word = pa.scalar(INSERT if self.told_in == CHANGE_COLUMN else UPSERT, pa.string())
                yield batch.append_column(self.told_in, pa.repeat(word, batch.num_rows))


class ChangesPartition(LakePartition):
    def __init__(self, storage: Storage, target: ChangeTarget, parts: Sequence[Part]) -> None:
        super().__init__()
        self.storage = storage
        self.target = target
        self.parts = parts

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from changes_of(self.storage, self.target, self.parts)


def rows_partitions(
    storage: Storage, target: ReadTarget, splits: Sequence[Split], told_in: str | None = None
) -> list[LakePartition]:
    return [RowsPartition(storage, target, parts, told_in) for parts in deal_parts(storage, target, splits, _SLOTS)]


def changes_partitions(storage: Storage, target: ChangeTarget, splits: Sequence[ChangeSplit]) -> list[LakePartition]:
    return [ChangesPartition(storage, target, parts) for parts in deal_changes(storage, target, splits, _SLOTS)]


class NothingPartition(LakePartition):
    """Of no partitions Spark makes one that knows nothing."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        return iter(())
