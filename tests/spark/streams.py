"""Streaming queries of tests: they run until nothing is left to be read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from lakelib import Table

Rows = list[tuple[Any, ...]]
Change = Callable[[DataFrame], DataFrame]

LATE_WORKER = "Python worker failed to connect back"
"""Spark gives a worker ten seconds to start, and no setting gives it more: too few where a machine has much to do."""
MOST_STARTS = 5
SCHEMA = "id bigint, dt string, v string"


def as_it_is(frame: DataFrame) -> DataFrame:
    return frame


def batch(*rows: tuple[int, str, str | None]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({"id": columns[0], "dt": columns[1], "v": pa.array(columns[2], pa.string())})


def rows_in(table: Table) -> Rows:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Queries of one checkpoint."""

    spark: SparkSession
    checkpoint: Path

    def load(self, table: str, **options: Any) -> DataFrame:
        return self.spark.readStream.format("lake").options(**options).load(table)

    def read(self, table: str, **options: Any) -> list[Rows]:
        """What each batch has, sorted, without the columns that differ from run to run."""
        batches: list[Rows] = []

        def keep(frame: DataFrame, batch_id: int) -> None:
            batches.append(sorted(map(tuple, frame.collect()), key=repr))

        query = self.load(table, **options).writeStream.foreachBatch(keep)
        query = query.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        return batches

    def copy(
        self,
        source: str,
        target: str,
        *,
        change: Change = as_it_is,
        mode: str = "append",
        read: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        frame = change(self.load(source, **(read or {})))
        writer = frame.writeStream.format("lake").outputMode(mode).options(**options)
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        _run(lambda: writer.start(target))

    def forget_last_commit(self) -> None:
        """As a process leaves it that ends after the table's commit, and before Spark has noted it."""
        last = max(int(each.name) for each in self.folder("commits") if each.name.isdecimal())
        for name in (f"{last}", f".{last}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)

    def folder(self, name: str) -> list[Path]:
        return list((self.checkpoint / name).iterdir())


def _run(start: Callable[[], StreamingQuery]) -> None:
    """Until it ends. A query that ends before it has begun is started again, as whoever runs it would do."""
    for left in reversed(range(MOST_STARTS)):
        try:
            start().awaitTermination()
            return
        except StreamingQueryException as error:
            if LATE_WORKER not in str(error) or not left:
                raise
