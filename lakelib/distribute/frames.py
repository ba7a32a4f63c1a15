"""A Spark data frame as a source of rows: written by Spark's tasks where it can be, collected where it must be."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelib.distribute.constants import constant
from lakelib.distribute.types import arrow_schema_of
from lakelib.distribute.writer import write_frame
from lakelib.rows.types import type_text
from lakelib.rows.values import raw_values
from lakelib.storage.write_work import WriteWork, WrittenFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSource:
    """`frame` is a DataFrame, classic or of Spark Connect: nothing that both lack is asked of it."""

    frame: Any
    schema: pa.Schema

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
        return write_frame(self.frame, self.schema, work, distribution)

    def with_constants(self, constants: Mapping[str, pa.Scalar]) -> "FrameSource":
        """The source with columns of one value each added: those that it has not already."""
        present = {name.casefold() for name in self.schema.names}
        frame = self.frame
        for name, value in constants.items():
            if name.casefold() not in present:
                raw = raw_values(pa.array([value]))[0]
                frame = frame.withColumn(name, constant(type_text(value.type), raw))
        return open_frame(frame)


def open_frame(frame: Any) -> FrameSource:
    """Raises InvalidInputError for columns of types that no table can have."""
    return FrameSource(frame=frame, schema=arrow_schema_of(frame.schema))
