"""Pure. Predicates that name partitions."""

from collections.abc import Collection, Mapping, Sequence

from lakelib.model import sortable
from lakelib.model.files import PartitionKey
from lakelib.model.predicate import And, Compare, Comparison, IsNull, Or, Predicate, Raw
from lakelib.model.schema import Column
from lakelib.plan.literals import any_of

_MOST_NAMED = 200


def all_equal(values: Mapping[Column, Raw | None]) -> Predicate:
    """Rows whose columns have just these values; None is NULL."""
    return And(parts=tuple(_equal(column, raw) for column, raw in values.items()))


def one_of(column: Column, values: Collection[Raw | None]) -> Predicate:
    """Rows whose column has one of these values; None is NULL."""
    return any_of([_equal(column, raw) for raw in values])


def _equal(column: Column, raw: Raw | None) -> Predicate:
    return IsNull(column=column) if raw is None else Compare(column=column, op=Comparison.EQ, value=raw)


def in_partition(partition_by: Sequence[Column], key: PartitionKey) -> Predicate:
    """Rows of one partition."""
    pairs = zip(partition_by, key, strict=True)
    return all_equal({column: None if part is None else sortable.decode(column.type, part) for column, part in pairs})


def in_any_partition(partition_by: Sequence[Column], keys: Collection[PartitionKey]) -> Predicate | None:
    """Rows of any of the partitions; None, for all rows, where naming each would take longer than looking at all."""
    if len(keys) > _MOST_NAMED:
        return None
    return Or(parts=tuple(in_partition(partition_by, key) for key in keys))
