"""Pure. Turns a schema that a person declares (Arrow, Spark or DDL text) into columns with ids."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.plan.sqltext import parse_columns, quoted
from lakelib.rows.types import (
    COMMENT,
    arrow_type,
    check_column_name,
    check_comment,
    column_type_text,
    is_list_like,
    quoted_name,
    type_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A column as it was declared, without an id."""

    name: str
    type: str
    nullable: bool
    comment: str = ""


def declare_schema(given: Any) -> tuple[Column, ...]:
    """The columns, with ids from 1, of a pyarrow.Schema, a Spark StructType, or DDL text like `id BIGINT NOT NULL`.

    Raises InvalidInputError, naming the column, for no columns, equal names, reserved names, unsupported types, and for
    fields inside of a column that are declared as NOT NULL: a table has no means to hold to it.
    """
    declared = declare_columns(given)
    if not declared:
        raise InvalidInputError("The schema has no columns.", kind="no_columns", remedy="Declare at least one column.")
    return tuple(
        Column(id=column_id, name=column.name, type=column.type, nullable=column.nullable, comment=column.comment)
        for column_id, column in enumerate(declared, start=1)
    )


def declare_columns(given: Any) -> tuple[Declared, ...]:
    """Like `declare_schema`, without ids, and there may be none. Columns that are declared stay what they are."""
    if isinstance(given, pa.Schema):
        declared = [declare_field(field) for field in given]
    elif isinstance(given, str):
        declared = [_from_ddl(node) for node in parse_columns(given)]
    elif isinstance(given, tuple) and all(isinstance(column, Declared) for column in given):
        declared = list(given)
    elif hasattr(given, "jsonValue"):
        declared = _from_spark(given.jsonValue())
    else:
        raise InvalidInputError(
            f"A schema cannot be made from {type(given).__name__}.",
            kind="invalid_schema",
            remedy="Give a pyarrow.Schema, a Spark StructType, or DDL text like 'id BIGINT NOT NULL, name STRING'.",
        )
    check_names([column.name for column in declared])
    return tuple(declared)


def check_names(names: Sequence[str]) -> None:
    """Raise InvalidInputError unless each is a name for a column, and no two differ at most by case."""
    seen: dict[str, str] = {}
    for name in names:
        check_column_name(name)
        if name.casefold() in seen:
            raise InvalidInputError(
                f"Two columns are named {seen[name.casefold()]!r} and {name!r}, which differ at most by case.",
                kind="duplicate_column",
                remedy="Rename one of them.",
            )
        seen[name.casefold()] = name


def declare_nodes(nodes: Sequence[exp.Expr]) -> tuple[Declared, ...]:
    """The columns of definitions in a statement."""
    declared = tuple(map(_from_ddl, nodes))
    check_names([column.name for column in declared])
    return declared


def declare_field(field: pa.Field) -> Declared:
    """The column of an Arrow field."""
    _check_nested(field.name, _required_paths(field.type, field.name))
    comment = (field.metadata or {}).get(COMMENT, b"").decode(errors="replace")
    return Declared(
        name=field.name,
        type=column_type_text(field.name, field.type),
        nullable=field.nullable,
        comment=check_comment(field.name, comment),
    )


def declare_type(name: str, text: str) -> str:
    """The normal text of a column's type. Raises InvalidInputError that names the column."""
    try:
        return type_text(arrow_type(text))
    except InvalidInputError as error:
        raise InvalidInputError(f"Column {name!r}: {error.message}", kind=error.kind, remedy=error.remedy) from None


def _from_spark(value: Mapping[str, Any]) -> list[Declared]:
    if not isinstance(value, Mapping) or value.get("type") != "struct":
        raise InvalidInputError(
            "The Spark type of a schema is not a struct.", kind="invalid_schema", remedy="Give a StructType."
        )
    return [_spark_column(field) for field in value["fields"]]


def _spark_column(field: Mapping[str, Any]) -> Declared:
    name = field["name"]
    _check_nested(name, _required_in_spark(field["type"], name))
    return Declared(
        name=name,
        type=declare_type(name, _spark_text(field["type"])),
        nullable=bool(field.get("nullable", True)),
        comment=check_comment(name, (field.get("metadata") or {}).get("comment", "")),
    )


def _spark_text(value: Any) -> str:
    """The type text of a type in Spark's JSON. What lakelib does not know comes out as text that it refuses."""
    if isinstance(value, str):
        return value
    match value["type"]:
        case "array":
            return f"array<{_spark_text(value['elementType'])}>"
        case "map":
            return f"map<{_spark_text(value['keyType'])},{_spark_text(value['valueType'])}>"
        case "struct":
            fields = (f"{quoted_name(field['name'])}:{_spark_text(field['type'])}" for field in value["fields"])
            return f"struct<{','.join(fields)}>"
        case other:
            return str(other)


def _from_ddl(node: exp.Expr) -> Declared:
    if not isinstance(node, exp.ColumnDef) or not isinstance(node.args.get("kind"), exp.DataType):
        raise _unsupported_ddl(node)
    _check_nested(node.name, _required_in_ddl(node.args["kind"], node.name))
    return Declared(
        name=node.name,
        type=declare_type(node.name, _ddl_text(node.args["kind"])),
        nullable=_is_nullable(node),
        comment=check_comment(node.name, _comment(node)),
    )


def _comment(node: exp.Expr) -> str:
    kinds = (constraint.args.get("kind") for constraint in node.args.get("constraints") or ())
    return "".join(kind.name for kind in kinds if isinstance(kind, exp.CommentColumnConstraint))


def _is_nullable(node: exp.Expr) -> bool:
    nullable = True
    for constraint in node.args.get("constraints") or ():
        match constraint.args.get("kind"):
            case exp.NotNullColumnConstraint() as kind:
                nullable = bool(kind.args.get("allow_null"))
            case exp.CommentColumnConstraint():
                pass
            case _:
                raise _unsupported_ddl(node)
    return nullable


def _ddl_text(kind: exp.Expr) -> str:
    """The type text of a type in DDL."""
    parts = kind.expressions
    if not kind.args.get("nested") or not parts:
        return kind.sql(dialect="spark")
    if kind.this is exp.DType.STRUCT:
        return f"struct<{','.join(_ddl_field(part) for part in parts)}>"
    word = "map" if kind.this is exp.DType.MAP else "array"
    return f"{word}<{','.join(_ddl_text(part) for part in parts)}>"


def _ddl_field(part: exp.Expr) -> str:
    if not isinstance(part, exp.ColumnDef):
        raise _unsupported_ddl(part)
    return f"{quoted_name(part.name)}:{_ddl_text(part.args['kind'])}"


# Fields inside of a column that may not be NULL. Keys of maps never are.


def _check_nested(name: str, required: Iterator[str]) -> None:
    path = next(required, None)
    if path is not None:
        raise InvalidInputError(
            f"Column {name!r}: {path} is declared as NOT NULL, and only whole columns can be.",
            kind="unsupported_type",
            remedy="Declare it as nullable; a gate can check that it is never NULL.",
        )


def _required_paths(kind: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_map(kind):
        inside = [(kind.key_field.with_nullable(True), f"{path}.key"), (kind.item_field, f"{path}.value")]
    elif pa.types.is_struct(kind):
        inside = [(field, f"{path}.{field.name}") for field in kind]
    elif is_list_like(kind):
        inside = [(kind.value_field, f"{path}.element")]
    else:
        return
    for field, place in inside:
        if not field.nullable:
            yield place
        yield from _required_paths(field.type, place)


def _required_in_spark(kind: Any, path: str) -> Iterator[str]:
    match kind:
        case {"type": "array", "elementType": element}:
            inside = [(element, kind.get("containsNull", True), f"{path}.element")]
        case {"type": "map", "keyType": key, "valueType": value}:
            nullable = kind.get("valueContainsNull", True)
            inside = [(key, True, f"{path}.key"), (value, nullable, f"{path}.value")]
        case {"type": "struct", "fields": fields}:
            inside = [(each["type"], each.get("nullable", True), f"{path}.{each['name']}") for each in fields]
        case _:
            return
    for element, nullable, place in inside:
        if not nullable:
            yield place
        yield from _required_in_spark(element, place)


def _required_in_ddl(kind: exp.Expr, path: str) -> Iterator[str]:
    names = ("key", "value") if kind.this is exp.DType.MAP else ("element",)
    for part, name in zip_longest(kind.expressions if kind.args.get("nested") else (), names):
        if isinstance(part, exp.ColumnDef):
            place = f"{path}.{part.name}"
            if not _is_nullable(part):
                yield place
            yield from _required_in_ddl(part.args["kind"], place)
        elif isinstance(part, exp.DataType):
            yield from _required_in_ddl(part, f"{path}.{name}")


def _unsupported_ddl(node: exp.Expr) -> InvalidInputError:
    return InvalidInputError(
        f"{quoted(node)} is not supported in a schema.",
        kind="invalid_schema",
        remedy="Each column is a name and a type, and may be followed by NOT NULL.",
    )
