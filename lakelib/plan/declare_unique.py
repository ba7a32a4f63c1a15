"""Pure. Of which tables it can be said that a key is in one partition at most."""

from collections.abc import Sequence

from lakelib.errors import InvalidInputError
from lakelib.model.merge import Merge
from lakelib.model.schema import TableSchema


def check_definition(
    schema: TableSchema, key_ids: Sequence[int], partition_ids: Sequence[int], sequence_ids: Sequence[int], merge: Merge
) -> None:
    """Raises InvalidInputError for a table of which this cannot be said."""
    names = {column.id: column.name for column in schema.columns}
    if not key_ids:
        raise _wrong("there is no primary key that a row could be known by.", "Name a primary_key, or leave it out.")
    if not partition_ids:
        raise _wrong("there are no partitions: a key is unique in the table anyway.", "Leave it out.")
    if set(partition_ids) <= set(key_ids):
        raise _wrong(
            "the partition is part of the key: rows of two partitions have two keys.",
            "Leave it out, or take the partition columns out of the primary_key.",
        )
    if shared := set(partition_ids) & set(sequence_ids):
        shown = ", ".join(repr(names[each]) for each in partition_ids if each in shared)
        raise _wrong(
            f"{shown} says both in which partition a row is and how new: what a row leaves behind would be in the"
            " partition that it goes to.",
            "Name another column in sequence_by.",
        )
    if not merge.is_newest:
        raise _wrong(
            f"the merge engine is {merge.engine.value}: a row that is made of versions of several partitions is in none"
            " of them.",
            'Leave it out, or merge by "deduplicate".',
        )


def _wrong(why: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"cross_partition is true, and {why}", kind="invalid_cross_partition", remedy=remedy)
