"""Pure. What UPDATE, DELETE and MERGE make of a table's rows: clauses, of which the first that is for a row counts."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.merge import MergeEngine, OnDelete
from lakelib.model.schema import Column
from lakelib.model.table import TableInfo
from lakelib.model.text import choose_from
from lakelib.plan.sql_parts import ColumnName
from lakelib.plan.sql_wrong import place_of
from lakelib.plan.sqltext import quoted


class Match(Enum):
    """Which rows a clause is for."""

    BOTH = "WHEN MATCHED"
    """Of the table and of the source, that belong together."""
    SOURCE = "WHEN NOT MATCHED"
    """Of the source alone."""
    TABLE = "WHEN NOT MATCHED BY SOURCE"
    """Of the table alone."""


class Action(Enum):
    """The numbers are what the query of changes says of a row."""

    UPDATE = 1
    INSERT = 2
    DELETE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """What a column is to be."""

    column: ColumnName
    value: exp.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    match: Match
    action: Action
    condition: exp.Expr | None = None
    values: tuple[Assigned, ...] | None = ()
    """None: all columns, as the source has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The source of a MERGE, and how its rows belong to the table's."""

    table: exp.Expr
    """As it stands behind FROM: a table or a query, under its alias."""
    alias: str
    on: exp.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What a statement makes of the rows of a table. Its trees are never changed: who builds on them copies."""

    text: str
    """For messages."""
    alias: str
    """How expressions call the table."""
    clauses: tuple[Clause, ...]
    beside: Beside | None = None
    """None: it is about the table's own rows alone."""
    before: exp.Expr | None = None
    """A WITH clause."""
    parameters: Mapping[str, Any]


def has(revision: Revision, action: Action, match: Match | None = None) -> bool:
    return any(each.action is action and match in (None, each.match) for each in revision.clauses)


def check_revision(revision: Revision, table: TableInfo, source_names: Sequence[str]) -> None:
    """Raises InvalidInputError, with the place in the text, for columns that are not there, and for what a table of
    this kind cannot do."""
    if not revision.clauses:
        raise InvalidInputError(
            "The merge says of no row what becomes of it.", kind="invalid_merge_into", remedy="Add a clause: WHEN …."
        )
    _check_reachable(revision)
    for clause in revision.clauses:
        if clause.values is None:
            _check_all_given(clause, table, source_names)
        for each in clause.values or ():
            find_assigned(table, each.column)
        if clause.action is Action.INSERT:
            _check_insert(clause, table)
    _check_engine(revision, table)


def _check_reachable(revision: Revision) -> None:
    """As Spark has it: of one kind of rows only the last clause may do without a condition."""
    ended: set[Match] = set()
    for clause in revision.clauses:
        if clause.match in ended:
            raise InvalidInputError(
                f"There is a {clause.match.value} without a condition, and another one behind it that is for no row.",
                kind="invalid_merge_into",
                remedy="Put the clause without a condition last.",
            )
        if clause.condition is None:
            ended.add(clause.match)


def find_assigned(table: TableInfo, named: ColumnName) -> Column:
    """The column of that name. Raises InvalidInputError, with names that may be meant."""
    found = table.schema.find(named.name)
    if found is None:
        raise InvalidInputError(
            f"{table.full_name} has no column {named.name!r}{named.place}.",
            kind="unknown_column",
            remedy=choose_from("Its columns", named.name, table.schema.names),
        )
    return found


def _check_all_given(clause: Clause, table: TableInfo, source_names: Sequence[str]) -> None:
    given = {name.casefold() for name in source_names}
    lacking = [name for name in table.schema.names if name.casefold() not in given]
    if lacking:
        raise InvalidInputError(
            f"{clause.match.value} takes all columns from the source, which lacks {', '.join(map(repr, lacking))}.",
            kind="missing_column",
            remedy=f"Name the columns that are set. The source has {', '.join(source_names)}.",
        )


def _check_insert(clause: Clause, table: TableInfo) -> None:
    if clause.values is None:
        return
    given = {each.column.name.casefold() for each in clause.values}
    needed = [*table.primary_key, *(column for column in table.schema.columns if not column.nullable)]
    lacking = [column.name for column in needed if column.name.casefold() not in given]
    if lacking:
        raise InvalidInputError(
            f"What is inserted has no {lacking[0]!r}, which is never NULL.",
            kind="missing_column",
            remedy="Name it among the columns, and give its value.",
        )


def _check_engine(revision: Revision, table: TableInfo) -> None:
    engine = table.merge.engine
    if has(revision, Action.UPDATE) and engine in (MergeEngine.FIRST_ROW, MergeEngine.AGGREGATE):
        does = "keeps the oldest version" if engine is MergeEngine.FIRST_ROW else "adds to what is there"
        raise InvalidInputError(
            f"{table.full_name} {does} of a key ({engine.value}): a row that was computed would not be the row.",
            kind="update_refused",
            remedy="Delete the rows, and upsert what they are to be; or overwrite whole partitions.",
        )
    if has(revision, Action.DELETE) and table.merge.on_delete is not OnDelete.ROW:
        raise InvalidInputError(
            f"Deletes of {table.full_name} take no row away: it was created with on_delete"
            f" {table.merge.on_delete.value!r}.",
            kind="deletes_refused",
            remedy="Delete by a condition over its own columns: Table.delete knows what such a table does.",
        )


def check_update(revision: Revision, table: TableInfo) -> None:
    """Raises InvalidInputError for an UPDATE of columns by which a row is found: where a row goes would have to be
    asked of all others."""
    for clause in revision.clauses:
        for each in clause.values or ():
            column = find_assigned(table, each.column)
            if column.id in identity_ids(table):
                what = "key" if column.id in table.primary_key_ids else "partition"
                raise InvalidInputError(
                    f"{column.name!r} is a {what} column of {table.full_name}: it says which row it is, and is not"
                    f" updated{each.column.place}.",
                    kind="key_update_refused",
                    remedy="Delete the row, and insert the one that it is to be."
                    + (" In a table with cross_partition a row may change its partition." if what != "key" else ""),
                )


def identity_ids(table: TableInfo) -> tuple[int, ...]:
    """The columns that say which row it is: it stays the same one only as long as they do."""
    if not table.primary_key_ids:
        return ()
    moves = table.options.cross_partition
    return tuple(dict.fromkeys((*table.primary_key_ids, *(() if moves else table.partition_ids))))


def no_such_row(node: exp.Column, clause: Clause) -> InvalidInputError:
    side = "the table" if clause.match is Match.SOURCE else "the source"
    return InvalidInputError(
        f"{quoted(node)} is of {side}, and {clause.match.value} is for rows that {side} does not have{place_of(node)}.",
        kind="unknown_column",
        remedy="Use columns of the other side.",
    )
