"""Pure. Knows the column types: their text (Spark's), their one Arrow type, and the values they hold."""

import re
from collections.abc import Sequence
from functools import cache

import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.model.schema import COMMIT_COLUMN, HIDDEN_COLUMNS, HIDDEN_PREFIX, Column
from lakelib.model.text import is_storable
from lakelib.rows.values import python_value, raw_value, raw_values

__all__ = [
    "COMMENT",
    "FIELD_ID",
    "MAX_TYPE_DEPTH",
    "arrow_field",
    "arrow_schema",
    "arrow_type",
    "check_column_name",
    "check_comment",
    "column_type_text",
    "hidden_field",
    "is_list_like",
    "python_value",
    "quoted_name",
    "raw_value",
    "raw_values",
    "type_text",
]

FIELD_ID = b"PARQUET:field_id"
"""Key of the Arrow field metadata that Parquet keeps as the field's id."""

COMMENT = b"comment"
"""Key of the Arrow field metadata in which people find, and give, a column's comment."""

MOST_COMMENT = 4000
"""Characters in a column's comment, at most."""

MAX_TYPE_DEPTH = 32
"""Types may be nested this deep."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_ARROW_OF_TEXT: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

_TEXT_OF_ARROW = {arrow: text for text, arrow in _ARROW_OF_TEXT.items()} | {
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date64(): "date",
}

_ALIASES = {
    "bool": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}

_REMEDIES: dict[str, str] = {
    "uint8": "Declare smallint.",
    "uint16": "Declare int.",
    "uint32": "Declare bigint.",
    "uint64": "Declare decimal(20,0), or bigint if the values fit.",
    "halffloat": "Declare float.",
    "null": "Declare the type that the values will have.",
}


def type_text(arrow_type: pa.DataType) -> str:
    """The text of an Arrow type; variants of one meaning (large, view, dictionary, other time units) have one text.

    Raises InvalidInputError for a type that no column can have, with the type to declare in its place.
    """
    return _text_of(arrow_type, 0)


def _text_of(given: pa.DataType, depth: int) -> str:
    _check_depth(depth)
    known = _TEXT_OF_ARROW.get(given)
    if known is not None:
        return known
    if pa.types.is_dictionary(given):
        return _text_of(given.value_type, depth + 1)
    if pa.types.is_timestamp(given):
        return "timestamp_ntz" if given.tz is None else "timestamp"
    if pa.types.is_fixed_size_binary(given):
        return "binary"
    if pa.types.is_decimal(given) and not pa.types.is_decimal256(given):
        return _decimal_text(given.precision, given.scale)
    if is_list_like(given):
        return f"array<{_text_of(given.value_type, depth + 1)}>"
    if pa.types.is_map(given):
        return f"map<{_text_of(given.key_type, depth + 1)},{_text_of(given.item_type, depth + 1)}>"
    if pa.types.is_struct(given):
        _check_struct_names([field.name for field in given])
        return f"struct<{','.join(f'{quoted_name(field.name)}:{_text_of(field.type, depth + 1)}' for field in given)}>"
    raise _unsupported(given)


def is_list_like(arrow_type: pa.DataType) -> bool:
    """Whether an Arrow type is any of the kinds of list."""
    types = pa.types
    return bool(
        types.is_list(arrow_type)
        or types.is_large_list(arrow_type)
        or types.is_fixed_size_list(arrow_type)
        or types.is_list_view(arrow_type)
        or types.is_large_list_view(arrow_type)
    )


def _decimal_text(precision: int, scale: int) -> str:
    if not 0 <= scale <= precision <= 38 or precision < 1:
        raise InvalidInputError(
            f"Type decimal({precision},{scale}) is not supported.",
            kind="unsupported_type",
            remedy="Declare a precision of 1 to 38 and a scale between 0 and the precision.",
        )
    return f"decimal({precision},{scale})"


def _unsupported(given: pa.DataType) -> InvalidInputError:
    return InvalidInputError(f"Type {given} is not supported.", kind="unsupported_type", remedy=_remedy_for(given))


def _remedy_for(given: pa.DataType) -> str:
    if pa.types.is_time(given):
        return "Declare string, or bigint for microseconds since midnight."
    if pa.types.is_duration(given) or pa.types.is_interval(given):
        return "Declare bigint and store a number of units."
    if pa.types.is_decimal256(given):
        return "Declare decimal with at most 38 digits."
    if isinstance(given, pa.BaseExtensionType):
        return f"Declare its storage type, {given.storage_type}."
    return _REMEDIES.get(str(given), f"Declare one of {', '.join(_ARROW_OF_TEXT)}, decimal, array, map or struct.")


def quoted_name(name: str) -> str:
    """A name as it stands in a struct's text: in backticks unless it is a plain identifier."""
    if _PLAIN_NAME.match(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def _check_struct_names(names: Sequence[str]) -> None:
    if not names or "" in names:
        raise InvalidInputError(
            "A struct needs at least one field, and each field a name.",
            kind="unsupported_type",
            remedy="Name every field of the struct.",
        )
    for name in names:
        _check_struct_name(name)
    folded = [name.casefold() for name in names]
    twice = next((name for name in names if folded.count(name.casefold()) > 1), None)
    if twice is not None:
        raise InvalidInputError(
            f"A struct has two fields named {twice!r} (without regard to case).",
            kind="duplicate_column",
            remedy="Rename one of them.",
        )


def _check_struct_name(name: str) -> None:
    if not is_storable(name):
        raise InvalidInputError(
            f"A struct has a field named {name!r}: it has a NUL character or a lone surrogate.",
            kind="invalid_name",
            remedy="Take another name.",
        )


def _check_depth(depth: int) -> None:
    if depth > MAX_TYPE_DEPTH:
        raise InvalidInputError(
            f"A type is nested more than {MAX_TYPE_DEPTH} deep.", kind="unsupported_type", remedy="Flatten it."
        )


@cache
def arrow_type(type_text: str) -> pa.DataType:
    """The one Arrow type of a type text. Case, spaces and Spark's aliases (long, integer, …) do not matter.

    Raises InvalidInputError on text that names no supported type.
    """
    return _TypeParser(type_text).parse()


class _TypeParser:
    """Recursive descent over one type text."""

    _TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|\w+|[<>(),:])")

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._at = 0

    def parse(self) -> pa.DataType:
        found = self._type(0)
        if self._at != len(self._tokens):
            raise self._wrong()
        return found

    def _split(self, text: str) -> list[str]:
        tokens, position = [], 0
        text = text.rstrip()
        while position < len(text):
            match = self._TOKEN.match(text, position)
            if match is None:
                raise self._wrong()
            tokens.append(match[1])
            position = match.end()
        return tokens

    def _type(self, depth: int) -> pa.DataType:
        _check_depth(depth)
        word = self._next().lower()
        name = _ALIASES.get(word, word)
        if name in _ARROW_OF_TEXT:
            return _ARROW_OF_TEXT[name]
        if name == "decimal":
            return self._decimal()
        if name == "array":
            return self._array(depth)
        if name == "map":
            return self._map(depth)
        if name == "struct":
            return self._struct(depth)
        raise self._wrong()

    def _decimal(self) -> pa.DataType:
        if self._peek() != "(":
            return pa.decimal128(10, 0)
        self._expect("(")
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._expect(",")
            scale = self._number()
        self._expect(")")
        _decimal_text(precision, scale)
        return pa.decimal128(precision, scale)

    def _array(self, depth: int) -> pa.DataType:
        self._expect("<")
        item = self._type(depth + 1)
        self._expect(">")
        return pa.list_(item)

    def _map(self, depth: int) -> pa.DataType:
        self._expect("<")
        key = self._type(depth + 1)
        self._expect(",")
        item = self._type(depth + 1)
        self._expect(">")
        return pa.map_(key, item)

    def _struct(self, depth: int) -> pa.DataType:
        self._expect("<")
        fields = [self._field(depth)]
        while self._peek() == ",":
            self._expect(",")
            fields.append(self._field(depth))
        self._expect(">")
        _check_struct_names([field.name for field in fields])
        return pa.struct(fields)

    def _field(self, depth: int) -> pa.Field:
        name = self._next()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        elif not re.match(r"\w", name):
            raise self._wrong()
        self._expect(":")
        _check_struct_name(name)
        return pa.field(name, self._type(depth + 1))

    def _number(self) -> int:
        token = self._next()
        if not token.isascii() or not token.isdigit() or len(token) > 4:
            raise self._wrong()
        return int(token)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise self._wrong()

    def _wrong(self) -> InvalidInputError:
        shown = self._text if len(self._text) <= 100 else self._text[:100] + "…"
        return InvalidInputError(
            f"{shown!r} is not a supported column type.",
            kind="unsupported_type",
            remedy=f"Use one of {', '.join(_ARROW_OF_TEXT)}, decimal(p,s), array<…>, map<…,…>, struct<name:type,…>.",
        )


def column_type_text(name: str, given: pa.DataType) -> str:
    """`type_text` for a column to be made; its errors name the column."""
    try:
        return type_text(given)
    except InvalidInputError as error:
        raise InvalidInputError(f"Column {name!r}: {error.message}", kind=error.kind, remedy=error.remedy) from None


def check_column_name(name: str) -> None:
    """Raise InvalidInputError for a name that no column can have."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidInputError("A column has no name.", kind="reserved_name", remedy="Name every column, in text.")
    if not is_storable(name):
        raise InvalidInputError(
            f"Column name {name!r} has a NUL character or a lone surrogate.",
            kind="invalid_name",
            remedy="Take another name.",
        )
    if name.casefold() in HIDDEN_COLUMNS or name.casefold().startswith(HIDDEN_PREFIX):
        raise InvalidInputError(
            f"Column name {name!r} is reserved.",
            kind="reserved_name",
            remedy="lakelib fills it itself: take another name.",
        )


def check_comment(name: str, comment: object) -> str:
    """The comment on a column of that name. Raises InvalidInputError for what the catalog cannot keep."""
    if isinstance(comment, str) and is_storable(comment) and len(comment) <= MOST_COMMENT:
        return comment
    raise InvalidInputError(
        f"The comment on column {name!r} is no text, has a NUL character or a lone surrogate, or is too long.",
        kind="invalid_comment",
        remedy=f"Give text of at most {MOST_COMMENT:,} characters; '' takes a comment away.",
    )


def arrow_schema(columns: Sequence[Column], hidden: Sequence[str] = ()) -> pa.Schema:
    """The Arrow schema of the columns, then the hidden ones. Each field's Parquet id is the column's id."""
    fields = [arrow_field(column) for column in columns]
    return pa.schema(fields + [hidden_field(name) for name in hidden])


def as_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of that schema, whose names are theirs. Values are touched only where types differ.
    Raises ValueError for NULL where the schema has none."""
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    pairs = zip(rows.columns, schema, strict=True)
    if all(column.type == field.type and (field.nullable or not column.null_count) for column, field in pairs):
        return pa.Table.from_arrays(rows.columns, schema=schema)
    return rows.cast(schema)


def plain_schema(columns: Sequence[Column]) -> pa.Schema:
    """The Arrow schema of the columns as people see it, without field ids; with comments."""
    return pa.schema([_plain_field(column) for column in columns])


def _plain_field(column: Column) -> pa.Field:
    metadata = {COMMENT: column.comment.encode()} if column.comment else None
    return pa.field(column.name, arrow_type(column.type), column.nullable, metadata)


def arrow_field(column: Column) -> pa.Field:
    """The Arrow field of one column."""
    metadata = {FIELD_ID: str(column.id).encode()} if column.id > 0 else None
    return pa.field(column.name, arrow_type(column.type), column.nullable, metadata)


def hidden_field(name: str) -> pa.Field:
    """The Arrow field of `_commit` or `_op`."""
    if name not in HIDDEN_COLUMNS:
        raise ValueError(f"{name} is not a hidden column")
    return pa.field(name, pa.int64() if name == COMMIT_COLUMN else pa.int8())
