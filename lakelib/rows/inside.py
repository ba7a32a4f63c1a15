"""Pure. Refuses rows outside of what an overwrite replaces: partitions, or rows for which a predicate is TRUE."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model import sortable
from lakelib.model.files import PartitionKey
from lakelib.model.predicate import Predicate, Raw
from lakelib.model.schema import Column
from lakelib.rows.arrange import partition_keys
from lakelib.rows.convert import shown_row
from lakelib.rows.filter import matching_rows
from lakelib.rows.values import python_value

_MOST_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideCheck:
    """Rows must have one of these values in each of these partition columns; None is NULL."""

    partition_by: tuple[Column, ...]
    values: Mapping[Column, tuple[Raw | None, ...]]

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises InvalidInputError for a batch of aligned rows one of which has another value."""
        if not self.values or not batch.num_rows:
            return
        wanted = {
            self.partition_by.index(column): {
                None if raw is None else sortable.encode(column.type, raw) for raw in raws
            }
            for column, raws in self.values.items()
        }
        for key in partition_keys(batch, self.partition_by):
            for position, allowed in wanted.items():
                if key[position] not in allowed:
                    raise self._outside(key, position)

    def _outside(self, key: PartitionKey, position: int) -> InvalidInputError:
        column, encoded = self.partition_by[position], key[position]
        found = None if encoded is None else python_value(column.type, sortable.decode(column.type, encoded))
        wanted = [None if raw is None else python_value(column.type, raw) for raw in self.values[column]]
        shown = ", ".join(map(str, wanted[:_MOST_SHOWN])) + (", …" if len(wanted) > _MOST_SHOWN else "")
        which = "the partition being overwritten is" if len(wanted) == 1 else "the partitions being overwritten are"
        return InvalidInputError(
            f"A row has {column.name} = {found!s}, but {which} {column.name} = {shown}.",
            kind="row_outside_partition",
            remedy='Leave such rows out, or overwrite with partitions="dynamic".',
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereCheck:
    """The predicate must be TRUE for each row; NULL will not do."""

    predicate: Predicate
    text: str

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises InvalidInputError for a batch of aligned rows with one that is outside."""
        outside = pc.invert(matching_rows(self.predicate, batch))
        count = pc.sum(outside).as_py() or 0
        if count:
            first = shown_row(batch.filter(outside), 0)
            raise InvalidInputError(
                f"{count:,} {'row is' if count == 1 else 'rows are'} not of those that are overwritten, where"
                f" {self.text}: {first}.",
                kind="row_outside_predicate",
                remedy="Leave such rows out, or overwrite where the predicate takes them in.",
            )


Inside = InsideCheck | WhereCheck
