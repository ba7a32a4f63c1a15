"""Part of reads and writes: which merge engine a table has, in the columns of one version of its schema, and what a
writer of its runs needs to know."""

from collections.abc import Collection, Sequence

from lakelib.errors import InvalidInputError
from lakelib.model.merge import OnDelete
from lakelib.model.schema import Column, TableSchema
from lakelib.model.table import TableInfo
from lakelib.rows.aggregate import INVERSE
from lakelib.rows.merge_engine import Engine, engine_of
from lakelib.work.run_writer import RunTarget

MOVES = "moved"
"""Goes into the names of files of marks for rows that leave their partition."""


def merge_engine(table: TableInfo, schema: TableSchema) -> Engine | None:
    """None keeps the newest version of each key."""
    return engine_of(table.merge, schema, table.primary_key_ids, table.partition_ids, table.sequence_ids)


def require_newest(table: TableInfo, what: str) -> None:
    """Raises InvalidInputError where a key may have more than its newest version."""
    if not table.merge.is_newest:
        raise InvalidInputError(
            f"{what} shows of each key of {table.full_name} one of its versions, and its merge engine is"
            f" {table.merge.engine.value}.",
            kind="invalid_merge",
            remedy='A Delta log has what compactions have written: set the option delta to "compacted".',
        )


def deletes_refused() -> InvalidInputError:
    return InvalidInputError(
        "The table takes no deletes: it was created so.",
        kind="deletes_refused",
        remedy='Partial updates with on_delete "row" or "groups" take some; an overwrite replaces rows in any table.',
    )


def refused_deletes(table: TableInfo, names: Collection[str]) -> InvalidInputError | None:
    """Why deletes among rows with columns of these names cannot be taken; None if they can."""
    if table.merge.on_delete is OnDelete.REFUSE:
        return deletes_refused()
    try:
        if table.merge.retract:
            check_values_given(table, names)
        if table.merge.on_delete is OnDelete.GROUPS and not any(told_groups(table, names)):
            return InvalidInputError(
                f"A delete among the rows for {table.full_name} empties groups, and has the sequence of none.",
                kind="missing_column",
                remedy="Add the sequence columns of the groups that deletes are to empty, or delete by key apart.",
            )
    except InvalidInputError as error:
        return error
    return None


def told_by_deletes(table: TableInfo) -> tuple[str, ...]:
    """The columns by which a delete says what it takes back, or as of when groups are empty."""
    if table.merge.retract:
        return tuple(column.name for column in table.schema.columns if column.function in INVERSE)
    if table.merge.on_delete is not OnDelete.GROUPS:
        return ()
    return tuple(column.name for group in table.merge.groups for column in table.schema.select(group.sequence))


def check_values_given(table: TableInfo, names: Collection[str]) -> None:
    """Raises InvalidInputError where deletes take values back and come without any: nothing would be deleted."""
    values = [column for column in table.schema.columns if column.function in INVERSE]
    if not any(_is_given(column, names) for column in values):
        raise InvalidInputError(
            f"What is deleted from {table.full_name} comes without a value: its deletes take values back.",
            kind="missing_column",
            remedy=f"Add what is to be taken back, of {', '.join(column.name for column in values) or 'no column'};"
            " or delete rows by a predicate.",
        )


def told_groups(table: TableInfo, names: Collection[str]) -> list[bool]:
    """Of which groups the rows say as of when they are empty. Raises InvalidInputError where they say half of it."""
    return [_is_told(table.schema.select(group.sequence), names) for group in table.merge.groups]


def _is_told(sequence: Sequence[Column], names: Collection[str]) -> bool:
    missing = [column.name for column in sequence if not _is_given(column, names)]
    if missing and len(missing) < len(sequence):
        raise InvalidInputError(
            f"What is deleted has a part of a group's sequence, and lacks {', '.join(map(repr, missing))}.",
            kind="missing_column",
            remedy="Give the whole sequence of each group that is to be emptied, and no part of others.",
        )
    return not missing


def _is_given(column: Column, names: Collection[str]) -> bool:
    return column.name.casefold() in {name.casefold() for name in names}


def run_target(
    table: TableInfo,
    schema: TableSchema,
    *,
    file_kind: str,
    order_names: tuple[str, ...],
    holds_deletes: bool = False,
    holds_commits: bool = False,
    one_partition: bool = False,
) -> RunTarget:
    return RunTarget(
        location=table.location,
        schema=schema,
        primary_key=schema.select(table.primary_key_ids),
        partition_by=schema.select(table.partition_ids),
        order_names=order_names,
        buckets=table.buckets,
        options=table.options,
        file_kind=file_kind,
        holds_deletes=holds_deletes,
        holds_commits=holds_commits,
        engine=merge_engine(table, schema),
        one_partition=one_partition,
    )


def order_names(table: TableInfo, schema: TableSchema) -> tuple[str, ...]:
    """By which the newest version is known. Other merge engines know by themselves, and take rows as they come."""
    if not table.merge.is_newest:
        return ()
    return tuple(column.name for column in schema.select(table.sequence_ids))


def moves_target(table: TableInfo, schema: TableSchema) -> RunTarget:
    """How the marks of rows that leave are written."""
    return run_target(table, schema, file_kind=MOVES, order_names=order_names(table, schema), holds_deletes=True)
