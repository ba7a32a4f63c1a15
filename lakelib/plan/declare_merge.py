"""Pure. Turns what a person says of a merge engine, in the names of columns, into values; refuses what cannot be. Says,
too, of which tables it can be said that a key is in one partition at most."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model import sortable
from lakelib.model.merge import Merge, MergeEngine, OnDelete, SequenceGroup
from lakelib.model.schema import Column, TableSchema
from lakelib.model.text import choose_from
from lakelib.rows.distinct import check_library

_ENGINES = tuple(each.value for each in MergeEngine)
_KEYS: Mapping[MergeEngine, tuple[str, ...]] = {
    MergeEngine.DEDUPLICATE: ("engine",),
    MergeEngine.FIRST_ROW: ("engine",),
    MergeEngine.PARTIAL_UPDATE: ("engine", "groups", "on_delete"),
    MergeEngine.AGGREGATE: ("engine", "functions", "retract"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The columns that a merge engine leaves alone."""

    key_ids: tuple[int, ...]
    partition_ids: tuple[int, ...]
    sequence_ids: tuple[int, ...]

    def of(self, column: Column) -> str | None:
        for role, ids in (
            ("primary key", self.key_ids),
            ("partition", self.partition_ids),
            ("sequence", self.sequence_ids),
        ):
            if column.id in ids:
                return role
        return None


def declare_merge(given: Any, schema: TableSchema, roles: Roles) -> tuple[Merge, TableSchema]:
    """The engine, and the columns with their functions. Raises InvalidInputError that says what is wrong."""
    told = {"engine": given} if isinstance(given, str) else given
    if not isinstance(told, Mapping) or not all(isinstance(key, str) for key in told):
        raise _wrong(f"merge is {given!r}.", f"Give the name of a merge engine: {', '.join(_ENGINES)}; or a dict.")
    engine = _engine(told.get("engine"))
    unknown = next((key for key in told if key not in _KEYS[engine]), None)
    if unknown is not None:
        raise _wrong(f"merge says {unknown!r} of {engine.value}.", choose_from("It takes", unknown, _KEYS[engine]))
    if engine is not MergeEngine.DEDUPLICATE and not roles.key_ids:
        raise _wrong(
            f"merge is {engine.value}, but the table has no primary key: it keeps every row.",
            "Name a primary_key, or leave merge out.",
        )
    groups = _groups(told.get("groups", ()), schema, roles)
    on_delete = _on_delete(told.get("on_delete", OnDelete.ROW.value), groups)
    retract = told.get("retract", False)
    if not isinstance(retract, bool):
        raise _wrong(f"retract is {retract!r}.", "Give true or false.")
    functions = told.get("functions", {})
    merge = Merge(engine=engine, groups=groups, on_delete=on_delete, retract=retract)
    return merge, with_functions(schema, functions, merge, roles)


def with_functions(schema: TableSchema, functions: Any, merge: Merge, roles: Roles) -> TableSchema:
    """The columns, some of them with functions. Raises InvalidInputError for functions that do not fit."""
    if not isinstance(functions, Mapping):
        raise _wrong(f"functions is {functions!r}.", 'Give a dict: {"amount": "sum"}.')
    if functions and merge.engine is not MergeEngine.AGGREGATE:
        raise _wrong(
            f"Functions are given, and the merge engine is {merge.engine.value}.", "Only aggregate has functions."
        )
    chosen: dict[int, str] = {}
    for name, function in functions.items():
        column = _column(schema, name, "functions")
        role = roles.of(column)
        if role is not None:
            raise _wrong(
                f"functions names the column {column.name!r}, which belongs to the {role}.",
                "Leave it out of functions.",
            )
        if column.id in chosen:
            raise _wrong(f"functions names the column {column.name!r} twice.", "Name it once.")
        chosen[column.id] = _function(function, column, merge)
    columns = tuple(
        column if column.id not in chosen else replace(column, function=chosen[column.id]) for column in schema.columns
    )
    return TableSchema(id=schema.id, columns=columns)


def check_added(schema: TableSchema, known: Collection[int], functions: Any) -> None:
    """Raises InvalidInputError unless functions are given to columns alone that a change of the schema adds."""
    found = (schema.find(name) for name in functions) if isinstance(functions, Mapping) else ()
    for column in found:
        if column is not None and column.id in known:
            raise _wrong(
                f"functions names the column {column.name!r}, which is there already: what is in files was made by the"
                " function that it has.",
                "Add a column, or create a new table.",
            )


def _wrong(what: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(what, kind="invalid_merge", remedy=remedy)


def _engine(name: Any) -> MergeEngine:
    if name not in _ENGINES:
        raise _wrong(f"The merge engine is {name!r}.", choose_from("Known merge engines", str(name), _ENGINES))
    return MergeEngine(name)


def _on_delete(given: Any, groups: Collection[SequenceGroup]) -> OnDelete:
    known = tuple(each.value for each in OnDelete)
    if given not in known:
        raise _wrong(f"on_delete is {given!r}.", choose_from("It is one of", str(given), known))
    if given == OnDelete.GROUPS.value and not groups:
        raise _wrong("on_delete is groups, and there is no group.", "Name groups, or another on_delete.")
    return OnDelete(given)


def _column(schema: TableSchema, name: Any, argument: str) -> Column:
    column = schema.find(name) if isinstance(name, str) else None
    if column is None:
        raise InvalidInputError(
            f"{argument} names the column {name!r}, which the schema does not have.",
            kind="unknown_column",
            remedy=choose_from("Its columns", str(name), schema.names),
        )
    return column


# Groups


def _groups(given: Any, schema: TableSchema, roles: Roles) -> tuple[SequenceGroup, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise _wrong(f"groups is {given!r}.", _GROUPS_REMEDY)
    taken: set[int] = set()
    groups = []
    for each in given:
        if not isinstance(each, Mapping) or set(each) != {"sequence", "columns"}:
            raise _wrong(f"A group is {each!r}.", _GROUPS_REMEDY)
        sequence = _members(each["sequence"], "sequence", schema, roles, taken)
        for column in sequence:
            if not sortable.is_sortable(column.type):
                raise _wrong(
                    f"A group's sequence names the column {column.name!r} of type {column.type}, which has no order.",
                    "Use a column that is not nested.",
                )
        columns = _members(each["columns"], "columns", schema, roles, taken)
        groups.append(
            SequenceGroup(
                sequence=tuple(column.id for column in sequence), columns=tuple(column.id for column in columns)
            )
        )
    return tuple(groups)


_GROUPS_REMEDY = 'Give a list of groups: [{"sequence": ["paid_at"], "columns": ["paid", "method"]}].'


def _members(given: Any, part: str, schema: TableSchema, roles: Roles, taken: set[int]) -> list[Column]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise _wrong(f"The {part} of a group is {given!r}.", _GROUPS_REMEDY)
    columns = [_column(schema, name, "A group") for name in given]
    for column in columns:
        role = roles.of(column)
        if role is not None:
            raise _wrong(
                f"A group names the column {column.name!r}, which belongs to the {role}.", "Leave it out of the group."
            )
        if column.id in taken:
            raise _wrong(f"Groups name the column {column.name!r} twice.", "Groups share no column: name it once.")
        if not column.nullable:
            raise _wrong(
                f"A group names the column {column.name!r}, which is NOT NULL: rows that lack the group have no value.",
                "Declare it as nullable.",
            )
        taken.add(column.id)
    return columns


# Functions


def _is_number(kind: str) -> bool:
    return kind in ("bigint", "float", "double")


def _is_list_of_scalars(kind: str) -> bool:
    inner = kind.removeprefix("array<").removesuffix(">")
    return kind.startswith("array<") and inner not in ("float", "double") and sortable.is_sortable(inner)


_FUNCTIONS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "sum": (lambda kind: _is_number(kind) or kind.startswith("decimal("), "bigint, float, double or decimal"),
    "product": (_is_number, "bigint, float or double"),
    "count": (lambda kind: kind == "bigint", "bigint"),
    "approx_count_distinct": (lambda kind: kind == "bigint", "bigint"),
    "min": (sortable.is_sortable, "a type that is not nested"),
    "max": (sortable.is_sortable, "a type that is not nested"),
    "first": (lambda kind: True, "any type"),
    "last": (lambda kind: True, "any type"),
    "first_non_null": (lambda kind: True, "any type"),
    "last_non_null": (lambda kind: True, "any type"),
    "bool_and": (lambda kind: kind == "boolean", "boolean"),
    "bool_or": (lambda kind: kind == "boolean", "boolean"),
    "collect_list": (lambda kind: kind.startswith("array<"), "an array"),
    "collect_set": (_is_list_of_scalars, "an array of a type that is not nested, nor a float"),
    "merge_map": (lambda kind: kind.startswith("map<"), "a map"),
    "listagg": (lambda kind: kind == "string", "string"),
}
"""Of each function the types of columns that it fits, and how they are called."""


def _function(given: Any, column: Column, merge: Merge) -> str:
    name, parenthesis, rest = given.partition("(") if isinstance(given, str) else (str(given), "", "")
    if name not in _FUNCTIONS:
        raise _wrong(
            f"The function of column {column.name!r} is {given!r}.", choose_from("Known functions", name, _FUNCTIONS)
        )
    if parenthesis and not (name == "listagg" and rest.endswith(")")):
        raise _wrong(
            f"The function of column {column.name!r} is {given!r}.", 'Only listagg takes something: "listagg(; )".'
        )
    fits, kinds = _FUNCTIONS[name]
    if not fits(column.type):
        raise _wrong(
            f"{name} does not fit column {column.name!r} of type {column.type}.", f"It takes a column of {kinds}."
        )
    if name == "approx_count_distinct":
        check_library()
    if not column.nullable and merge.retract:
        raise _wrong(
            f"Column {column.name!r} is NOT NULL, and what was given may be taken back from it.",
            "Declare it as nullable.",
        )
    return str(given)


def check_definition(
    schema: TableSchema, key_ids: Sequence[int], partition_ids: Sequence[int], sequence_ids: Sequence[int], merge: Merge
) -> None:
    """Raises InvalidInputError for a table of which this cannot be said."""
    names = {column.id: column.name for column in schema.columns}
    if not key_ids:
        raise _not_unique(
            "there is no primary key that a row could be known by.", "Name a primary_key, or leave it out."
        )
    if not partition_ids:
        raise _not_unique("there are no partitions: a key is unique in the table anyway.", "Leave it out.")
    if set(partition_ids) <= set(key_ids):
        raise _not_unique(
            "the partition is part of the key: rows of two partitions have two keys.",
            "Leave it out, or take the partition columns out of the primary_key.",
        )
    if shared := set(partition_ids) & set(sequence_ids):
        shown = ", ".join(repr(names[each]) for each in partition_ids if each in shared)
        raise _not_unique(
            f"{shown} says both in which partition a row is and how new: what a row leaves behind would be in the"
            " partition that it goes to.",
            "Name another column in sequence_by.",
        )
    if not merge.is_newest:
        raise _not_unique(
            f"the merge engine is {merge.engine.value}: a row that is made of versions of several partitions is in none"
            " of them.",
            'Leave it out, or merge by "deduplicate".',
        )


def _not_unique(why: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"cross_partition is true, and {why}", kind="invalid_cross_partition", remedy=remedy)
