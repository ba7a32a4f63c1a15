"""Pure. Decides what a schema becomes when columns are added, dropped, renamed or widened."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.model.text import choose_from
from lakelib.plan.declare import Declared, check_names, declare_columns, declare_field, declare_type
from lakelib.rows.convert import RefusedError
from lakelib.rows.types import arrow_type
from lakelib.rows.widen import widened_type


def widen_to(schema: TableSchema, later: TableSchema) -> TableSchema:
    """The columns as they were, with room for what came later. It is no version of the table's schema."""
    types = {column.id: column.type for column in later.columns}
    columns = tuple(replace(column, type=types.get(column.id, column.type)) for column in schema.columns)
    return schema if columns == schema.columns else TableSchema(id=0, columns=columns)


def evolve_schema(
    schema: TableSchema,
    next_id: int,
    *,
    add: Sequence[Any] = (),
    drop: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    widen: Mapping[str, str] | None = None,
    fixed_ids: frozenset[int],
    kept_ids: frozenset[int],
    grouped_ids: frozenset[int] = frozenset(),
) -> TableSchema:
    """The schema after the changes, all of which name columns as they are before: drop, rename, widen, then add.

    `add` holds (name, type) pairs, pyarrow Fields or DDL text; added columns are nullable, come last, and take ids from
    `next_id`: a name that was dropped before is a new column. `kept_ids` (primary key, partition, sequence) cannot be
    dropped, `fixed_ids` (primary key, partition) not widened. Raises InvalidInputError that names the column.
    """
    dropped = {_existing(schema, name, "drop").id for name in ([drop] if isinstance(drop, str) else drop)}
    new_names = {_existing(schema, name, "rename").id: new for name, new in _texts("rename", rename).items()}
    new_types = {_existing(schema, name, "widen").id: text for name, text in _texts("widen", widen).items()}
    added = _declared(add)
    _check_grouped(schema, dropped & grouped_ids)
    _check_changes(schema, dropped, {*new_names, *new_types}, bool(added), kept_ids)
    columns = [
        _changed(column, new_names, new_types, fixed_ids) for column in schema.columns if column.id not in dropped
    ]
    columns += [
        Column(id=column_id, name=new.name, type=new.type, nullable=True)
        for column_id, new in enumerate(added, start=next_id)
    ]
    check_names([column.name for column in columns])
    return TableSchema(id=schema.id + 1, columns=tuple(columns))


def _texts(argument: str, given: Mapping[str, str] | None) -> Mapping[str, str]:
    """Raises InvalidInputError unless the argument maps text to text."""
    found = given or {}
    if not isinstance(found, Mapping) or not all(isinstance(text, str) for pair in found.items() for text in pair):
        example = {"rename": '{"old": "new"}', "widen": '{"n": "bigint"}'}[argument]
        raise InvalidInputError(
            f"{argument} is {given!r}.",
            kind="invalid_columns",
            remedy=f"Give column names and texts: {argument}={example}.",
        )
    return found


def _existing(schema: TableSchema, name: str, change: str) -> Column:
    column = schema.find(name)
    if column is None:
        raise InvalidInputError(
            f"Column {name!r}, to {change}, does not exist.",
            kind="unknown_column",
            remedy=choose_from("The columns", name, schema.names),
        )
    return column


def _declared(add: Sequence[Any]) -> list[Declared]:
    given = [add] if isinstance(add, str | pa.Field) else add
    added = [declared for item in given for declared in _declared_item(item)]
    required = next((declared.name for declared in added if not declared.nullable), None)
    if required is not None:
        raise InvalidInputError(
            f"Column {required!r} cannot be added as NOT NULL: the rows that exist have no value for it.",
            kind="invalid_evolution",
            remedy="Add it as nullable.",
        )
    return added


def _declared_item(item: Any) -> Sequence[Declared]:
    if isinstance(item, str):
        return declare_columns(item)
    if isinstance(item, pa.Field):
        return [declare_field(item)]
    if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str):
        name, given = item
        if isinstance(given, pa.DataType):
            return [declare_field(pa.field(name, given))]
        if isinstance(given, str):
            return [Declared(name=name, type=declare_type(name, given), nullable=True)]
    raise InvalidInputError(
        f"{item!r} is not a column to add.",
        kind="invalid_evolution",
        remedy="Give a (name, type) pair, a pyarrow.Field, or DDL text like 'note STRING'.",
    )


def _check_grouped(schema: TableSchema, dropped: Collection[int]) -> None:
    for column in schema.select(sorted(dropped)):
        raise InvalidInputError(
            f"Column {column.name!r} cannot be dropped: a sequence group of the table's merge engine names it.",
            kind="invalid_evolution",
            remedy="Create a new table whose groups do without it.",
        )


def _check_changes(
    schema: TableSchema, dropped: set[int], changed: set[int], is_adding: bool, kept_ids: frozenset[int]
) -> None:
    if not dropped and not changed and not is_adding:
        raise InvalidInputError("No change of the schema is given.", kind="invalid_evolution", remedy="Name a change.")
    for column in schema.columns:
        if column.id in dropped and column.id in kept_ids:
            raise InvalidInputError(
                f"Column {column.name!r} cannot be dropped: it belongs to the primary key, partition or sequence.",
                kind="invalid_evolution",
                remedy="Create a new table without it.",
            )
        if column.id in dropped and column.id in changed:
            raise InvalidInputError(
                f"Column {column.name!r} cannot be dropped and changed at once.",
                kind="invalid_evolution",
                remedy="Do one of the two.",
            )
    if len(dropped) == len(schema.columns) and not is_adding:
        raise InvalidInputError(
            "All columns would be dropped.", kind="invalid_evolution", remedy="Keep one, or drop the table."
        )


def _changed(
    column: Column, new_names: Mapping[int, str], new_types: Mapping[int, str], fixed_ids: frozenset[int]
) -> Column:
    renamed = replace(column, name=new_names.get(column.id, column.name))
    if column.id not in new_types:
        return renamed
    wanted = declare_type(column.name, new_types[column.id])
    if wanted == column.type:
        return renamed
    if column.id in fixed_ids:
        raise InvalidInputError(
            f"Column {column.name!r} keeps its type {column.type}: it belongs to the primary key or partition.",
            kind="invalid_evolution",
            remedy="Create a new table with the wider type.",
        )
    if not is_wider(wanted, column.type):
        raise InvalidInputError(
            f"Column {column.name!r} cannot be widened from {column.type} to {wanted}.",
            kind="invalid_evolution",
            remedy="A type widens along tinyint, smallint, int, bigint; from float to double; to a decimal with more "
            "digits and the same scale; a struct by new fields at its end.",
        )
    return replace(renamed, type=wanted)


def names_differ(now: TableSchema, earlier: TableSchema) -> bool:
    """Whether a column of both has two names, or a name has meant another column."""
    for column in now.columns:
        known, of_name = earlier.by_id(column.id), earlier.find(column.name)
        if (known is not None and known.name != column.name) or (of_name is not None and of_name.id != column.id):
            return True
    return False


def is_wider(wanted: str, current: str) -> bool:
    """Whether a column of the current type can become one of the wanted type."""
    try:
        return bool(widened_type(arrow_type(current), arrow_type(wanted)) == arrow_type(wanted))
    except RefusedError:
        return False
