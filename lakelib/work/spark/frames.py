"""A Spark data frame as a source of rows: written by Spark's tasks where it can be, collected where it must be."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import LakeError
from lakelib.rows.types import type_text
from lakelib.rows.values import raw_values
from lakelib.work.spark.conditions import constant
from lakelib.work.spark.types import arrow_schema_of
from lakelib.work.spark.write import write_frame
from lakelib.work.write import WriteWork, WrittenFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSource:
    """`frame` is a DataFrame, classic or of Spark Connect: nothing that both lack is asked of it."""

    frame: Any
    schema: pa.Schema
    settle: Callable[[], None] | None = None
    """Called when the rows were read: raises a LakeError if they are not those that were meant."""

    @property
    def session(self) -> Any:
        return self.frame.sparkSession

    @property
    def rereadable(self) -> bool:
        """Spark computes a data frame anew each time."""
        return True

    @property
    def size_bytes(self) -> int:
        """Nothing is in this process's memory."""
        return 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, collected."""
        yield from self.frame.toArrow().to_batches()

    def check(self, work: WriteWork) -> None:
        """Values are seen by the tasks only."""
        work.align(self.schema)

    def write(self, work: WriteWork, *, threads: int, distribution: str) -> WrittenFiles:
        self.check(work)
        written = write_frame(self.frame, self.schema, work, distribution)
        try:
            if self.settle is not None:
                self.settle()
        except LakeError:
            work.storage.at(work.target.location).delete_files(file.path for file in written.files)
            raise
        return written

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> "FrameSource":
        """The source with columns of one value each added: those that it has not already."""
        present = {name.casefold() for name in self.schema.names}
        frame = self.frame
        for name, value in constants.items():
            if name.casefold() not in present:
                raw = raw_values(pa.array([value]))[0]
                frame = frame.withColumn(name, constant(type_text(value.type), raw))
        return open_frame(frame, self.settle)


def open_frame(frame: Any, settle: Callable[[], None] | None = None) -> FrameSource:
    """Raises InvalidInputError for columns of types that no table can have."""
    return FrameSource(frame=frame, schema=arrow_schema_of(frame.schema), settle=settle)
