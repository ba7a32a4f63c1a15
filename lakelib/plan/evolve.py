"""Pure. Decides what a schema becomes when its columns change."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.model.text import choose_from
from lakelib.plan.declare import Declared, check_names, declare_columns, declare_field, declare_type
from lakelib.rows.convert import RefusedError
from lakelib.rows.types import arrow_type, check_comment
from lakelib.rows.values import decimal_parts
from lakelib.rows.widen import widened_type


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """What is to become of a schema. Columns are named as they are before; `move` knows added ones, too."""

    add: Sequence[Any] | str = ()
    """(name, type) pairs, pyarrow Fields or DDL text; added columns are nullable and come last."""
    drop: Sequence[str] | str = ()
    rename: Mapping[str, str] | None = None
    widen: Mapping[str, str] | None = None
    nullable: Sequence[str] | str = ()
    """Columns that may be NULL from now on."""
    move: Mapping[str, str] | None = None
    """To "first", or to "after NAME", one after the other."""
    comment: Mapping[str, str] | None = None
    functions: Mapping[str, str] | None = None
    """Of added columns, where the table aggregates."""

    @property
    def is_none(self) -> bool:
        return not any((self.add, self.drop, self.rename, self.widen, self.nullable, self.move, self.comment))


def describe_change(before: TableSchema, after: TableSchema) -> str:
    """What has become of the columns, in words: `adds note, renames qty to quantity, moves id`."""
    told = [f"drops {column.name}" for column in before.columns if after.by_id(column.id) is None]
    for column in after.columns:
        was = before.by_id(column.id)
        if was is None:
            told.append(f"adds {column.name}")
            continue
        told += [f"renames {was.name} to {column.name}"] if was.name != column.name else []
        told += [f"widens {column.name} to {column.type}"] if was.type != column.type else []
        told += [f"lets {column.name} be NULL"] if was.nullable != column.nullable else []
        told += [f"comments on {column.name}"] if was.comment != column.comment else []
    kept = [column.id for column in after.columns if before.by_id(column.id)]
    if kept != [column.id for column in before.columns if after.by_id(column.id)]:
        told.append("moves columns")
    return ", ".join(told)


def widen_to(schema: TableSchema, later: TableSchema) -> TableSchema:
    """The columns as they were, with room for what came later. It is no version of the table's schema."""
    columns = tuple(_with_room(column, later.by_id(column.id)) for column in schema.columns)
    return schema if columns == schema.columns else TableSchema(id=0, columns=columns)


def _with_room(column: Column, later: Column | None) -> Column:
    if later is None:
        return column
    nullable = column.nullable or later.nullable
    return replace(column, type=later.type, scale_since=later.scale_since, nullable=nullable)


def evolve_schema(
    schema: TableSchema,
    next_id: int,
    change: SchemaChange,
    *,
    key_ids: frozenset[int],
    fixed_ids: frozenset[int],
    kept_ids: frozenset[int],
    grouped_ids: frozenset[int] = frozenset(),
) -> TableSchema:
    """The schema after the change. Added columns take ids from `next_id`: a name that was dropped before is a new
    column. `kept_ids` (primary key, partition, sequence) cannot be dropped, `fixed_ids` (primary key, partition) not
    widened, `key_ids` never be NULL. Raises InvalidInputError that names the column.
    """
    dropped = {_existing(schema, name, "drop").id for name in _listed(change.drop)}
    added = _declared(change.add)
    changes = _ColumnChanges(
        names=_by_id(schema, "rename", change.rename),
        types=_by_id(schema, "widen", change.widen),
        comments=_by_id(schema, "comment", change.comment),
        nullable_ids=frozenset(_existing(schema, name, "take NOT NULL from").id for name in _listed(change.nullable)),
    )
    if change.is_none:
        raise InvalidInputError("No change of the schema is given.", kind="invalid_evolution", remedy="Name a change.")
    _check_grouped(schema, dropped & grouped_ids)
    _check_dropped(schema, dropped, changes.ids, bool(added), kept_ids)
    _check_nullable(schema, changes.nullable_ids & key_ids)
    columns = [_changed(column, changes, fixed_ids) for column in schema.columns if column.id not in dropped]
    columns += [
        Column(id=column_id, name=new.name, type=new.type, nullable=True, comment=new.comment)
        for column_id, new in enumerate(added, start=next_id)
    ]
    check_names([column.name for column in columns])
    kept = [column for column in schema.columns if column.id not in dropped]
    known = {column.name.casefold(): column.id for column in (*columns[len(kept) :], *kept)}
    for name, place in _texts("move", change.move).items():
        columns = _moved(columns, known, name, place)
    return TableSchema(id=schema.id + 1, columns=tuple(columns))


def under_id(
    before: TableSchema, after: TableSchema, schema_id: int, earlier: Sequence[TableSchema] | None = None
) -> TableSchema:
    """The changed schema as the version that it becomes: decimals of another scale note it. `earlier` are all versions
    of the schema, where files are to call a column what they have called it first, and nothing else so; without them
    new files have its new name."""
    columns = tuple(
        replace(column, scale_since=schema_id) if _is_rescaled(before.by_id(column.id), column) else column
        for column in after.columns
    )
    return TableSchema(id=schema_id, columns=_stored_under_names(before, columns, earlier))


def _stored_under_names(
    before: TableSchema, columns: Sequence[Column], earlier: Sequence[TableSchema] | None
) -> tuple[Column, ...]:
    taken: dict[str, set[int]] = defaultdict(set)
    kept: dict[int, str] = {}
    for column in columns:
        known = before.by_id(column.id)
        if known is not None and (earlier is not None or column.name == known.name):
            kept[column.id] = known.in_file.name
            taken[known.in_file.name.casefold()].add(column.id)
    for column in (each for schema in earlier or () for each in schema.in_files.columns):
        taken[column.name.casefold()].add(column.id)
    found = []
    for column in columns:
        name = kept.get(column.id) or _free_name(column, taken)
        taken[name.casefold()].add(column.id)
        found.append(replace(column, stored_as="" if name == column.name else name))
    return tuple(found)


def _free_name(column: Column, taken: Mapping[str, Collection[int]]) -> str:
    """One that means no other column."""
    names = chain([column.name], (f"{column.name}-{column.id}{'-' * more}" for more in count()))
    return next(name for name in names if not {*taken.get(name.casefold(), ())} - {column.id})


def _is_rescaled(before: Column | None, after: Column) -> bool:
    old, new = None if before is None else decimal_parts(before.type), decimal_parts(after.type)
    return old is not None and new is not None and old[1] != new[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnChanges:
    """What is to become of columns, by id."""

    names: Mapping[int, str]
    types: Mapping[int, str]
    comments: Mapping[int, str]
    nullable_ids: frozenset[int]

    @property
    def ids(self) -> set[int]:
        return {*self.names, *self.types, *self.comments, *self.nullable_ids}


def _listed(names: Sequence[str] | str) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _by_id(schema: TableSchema, argument: str, given: Mapping[str, str] | None) -> dict[int, str]:
    return {_existing(schema, name, argument).id: text for name, text in _texts(argument, given).items()}


def _moved(columns: list[Column], known: Mapping[str, int], name: str, place: str) -> list[Column]:
    """The columns with one of them at its new place."""
    moved = _placed(columns, known, name)
    others = [column for column in columns if column is not moved]
    if place.strip().casefold() == "first":
        return [moved, *others]
    word, _, after = place.strip().partition(" ")
    if word.casefold() != "after" or not after.strip():
        raise InvalidInputError(
            f"Column {name!r} is to be moved to {place!r}.",
            kind="invalid_evolution",
            remedy='Say where: "first", or "after NAME".',
        )
    before = _placed(others, known, after.strip())
    at = others.index(before) + 1
    return [*others[:at], moved, *others[at:]]


def _placed(columns: Sequence[Column], known: Mapping[str, int], name: str) -> Column:
    found = next((column for column in columns if column.id == known.get(name.casefold())), None)
    if found is None:
        raise InvalidInputError(
            f"Column {name!r}, to move or to move another one after, is not there.",
            kind="unknown_column",
            remedy=choose_from("The columns", name, [column.name for column in columns]),
        )
    return found


def _check_nullable(schema: TableSchema, key_ids: frozenset[int]) -> None:
    for column in schema.columns:
        if column.id in key_ids:
            raise InvalidInputError(
                f"Column {column.name!r} belongs to the primary key, which is never NULL.",
                kind="invalid_evolution",
                remedy="Create a new table with another key.",
            )


_EXAMPLES = {
    "rename": '{"old": "new"}',
    "widen": '{"n": "bigint"}',
    "move": '{"note": "after amount"}',
    "comment": '{"amount": "gross, in EUR"}',
}


def _texts(argument: str, given: Mapping[str, str] | None) -> Mapping[str, str]:
    """Raises InvalidInputError unless the argument maps text to text."""
    found = given or {}
    if not isinstance(found, Mapping) or not all(isinstance(text, str) for pair in found.items() for text in pair):
        example = _EXAMPLES[argument]
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
    if isinstance(item, Declared):
        return [item]
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


def _check_dropped(
    schema: TableSchema, dropped: set[int], changed: set[int], is_adding: bool, kept_ids: frozenset[int]
) -> None:
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


def _changed(column: Column, changes: _ColumnChanges, fixed_ids: frozenset[int]) -> Column:
    renamed = replace(
        column,
        name=changes.names.get(column.id, column.name),
        nullable=column.nullable or column.id in changes.nullable_ids,
        comment=check_comment(column.name, changes.comments.get(column.id, column.comment)),
    )
    if column.id not in changes.types:
        return renamed
    wanted = declare_type(column.name, changes.types[column.id])
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
            "digits before its point, behind it, or both; a struct by new fields at its end.",
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
