"""Pure. Turns a schema that a person declares (Arrow, Spark or DDL text) into columns with ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.plan.sqltext import parse_columns, quoted
from lakelib.rows.types import arrow_type, check_column_name, column_type_text, quoted_name, type_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A column as it was declared, without an id."""

    name: str
    type: str
    nullable: bool


def declare_schema(given: Any) -> tuple[Column, ...]:
    """The columns, with ids from 1, of a pyarrow.Schema, a Spark StructType, or DDL text like `id BIGINT NOT NULL`.

    Raises InvalidInputError, naming the column, for no columns, equal names, reserved names and unsupported types.
    """
    declared = declare_columns(given)
    if not declared:
        raise InvalidInputError("The schema has no columns.", kind="no_columns", remedy="Declare at least one column.")
    return tuple(
        Column(id=column_id, name=column.name, type=column.type, nullable=column.nullable)
        for column_id, column in enumerate(declared, start=1)
    )


def declare_columns(given: Any) -> tuple[Declared, ...]:
    """Like `declare_schema`, without ids, and there may be none."""
    if isinstance(given, pa.Schema):
        declared = [declare_field(field) for field in given]
    elif isinstance(given, str):
        declared = [_from_ddl(node) for node in parse_columns(given)]
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


def declare_field(field: pa.Field) -> Declared:
    """The column of an Arrow field."""
    return Declared(name=field.name, type=column_type_text(field.name, field.type), nullable=field.nullable)


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
    return [
        Declared(
            name=field["name"],
            type=declare_type(field["name"], _spark_text(field["type"])),
            nullable=bool(field.get("nullable", True)),
        )
        for field in value["fields"]
    ]


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
    nullable = True
    for constraint in node.args.get("constraints") or ():
        match constraint.args.get("kind"):
            case exp.NotNullColumnConstraint() as kind:
                nullable = bool(kind.args.get("allow_null"))
            case exp.CommentColumnConstraint():
                pass
            case _:
                raise _unsupported_ddl(node)
    return Declared(name=node.name, type=declare_type(node.name, _ddl_text(node.args["kind"])), nullable=nullable)


def _ddl_text(kind: exp.Expr) -> str:
    """The type text of a type in DDL. Fields of structs are always nullable, whatever the text says."""
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


def _unsupported_ddl(node: exp.Expr) -> InvalidInputError:
    return InvalidInputError(
        f"{quoted(node)} is not supported in a schema.",
        kind="invalid_schema",
        remedy="Each column is a name and a type, and may be followed by NOT NULL.",
    )
