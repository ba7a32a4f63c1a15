"""Pure. Turns incoming rows, and rows of files of older schemas, into exactly the columns that are wanted."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import HIDDEN_COLUMNS, Column, TableSchema
from lakelib.model.text import meant
from lakelib.rows.convert import (
    Convert,
    RefusedError,
    Rules,
    failing_rows,
    first_failing_row,
    plan_conversion,
    shown_value,
)
from lakelib.rows.types import arrow_schema, arrow_type, check_column_name, column_type_text, hidden_field, type_text
from lakelib.rows.widen import widened_type
from lakelib.rows.wrong import MOST_COUNTED, WrongValue, has_text, wrong_texts, wrong_values

_MOST_SHOWN_BYTES = 80
_MOST_PLANS = 64
_MOST_TEXTS = 100
_ROUND = "Round to microseconds before writing, or give explicit_cast=True, which does."


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedColumn:
    """How one column comes about: from a place in the source, converted; without a place it is all NULL."""

    column: Column
    place: int | None
    convert: Convert | None
    required: bool
    has_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """How batches of one source schema become rows of a table."""

    source: pa.Schema
    schema: pa.Schema
    """Of the aligned batches: the table's columns in order, then the extra ones."""
    columns: tuple[AlignedColumn, ...]
    extra_places: tuple[int, ...]

    def apply(self, batch: pa.RecordBatch, first_row: int = 0) -> pa.RecordBatch:
        """The batch with the table's columns, then the extra ones as they came.

        Raises WrongValuesError, naming columns, rows and values, if values do not convert exactly, text is no UTF-8,
        or a key or other non-nullable column holds NULL. The batch's first row has that number.
        """
        if not batch.schema.equals(self.source):
            raise ValueError("a batch does not have the schema that the alignment was planned for")
        wrong: list[WrongValue] = []
        arrays = [_aligned_array(batch, aligned, wrong) for aligned in self.columns]
        if wrong:
            raise wrong_values(wrong, batch, first_row)
        arrays += [batch.column(place) for place in self.extra_places]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def plan_alignment(
    source: pa.Schema,
    target: TableSchema,
    *,
    required_ids: frozenset[int],
    extra: Sequence[str] = (),
    explicit_cast: bool = False,
    only_ids: frozenset[int] | None = None,
) -> Alignment:
    """How rows of a source schema become rows of the table. Raises InvalidInputError if they cannot.

    Names match without regard to case. `required_ids` (the primary key) are never NULL, whatever the schema says.
    `extra` columns are carried along untouched, under the given names; one that is a column of the target anyway is
    not repeated. With `only_ids` just those columns of the target are wanted, and all others of the source ignored.
    """
    return _plan_alignment(source, target, required_ids, tuple(extra), explicit_cast, only_ids)


@lru_cache(maxsize=_MOST_PLANS)
def _plan_alignment(
    source: pa.Schema,
    target: TableSchema,
    required_ids: frozenset[int],
    extra: tuple[str, ...],
    explicit_cast: bool,
    only_ids: frozenset[int] | None,
) -> Alignment:
    """Writers mostly come again with rows of the schema of the last ones. What metadata says has no part in it."""
    places = places_by_name(source)
    wanted = [column for column in target.columns if only_ids is None or column.id in only_ids]
    carried = _extra_places(extra, places, wanted)
    if only_ids is None:
        _check_all_known(source, target, carried)
    rules = Rules(explicit=explicit_cast)
    columns = tuple(
        _plan_column(source, places, column, not column.nullable or column.id in required_ids, rules)
        for column in wanted
    )
    fields = [source.field(place).with_name(name).remove_metadata() for name, place in carried.items()]
    return Alignment(
        source=source,
        schema=pa.schema(list(arrow_schema(wanted)) + fields),
        columns=columns,
        extra_places=tuple(carried.values()),
    )


def places_by_name(source: pa.Schema) -> dict[str, int]:
    """The place of each column by its casefolded name. Raises InvalidInputError on no columns, or on two alike."""
    if not len(source):
        raise InvalidInputError(
            "The data has no columns.", kind="no_columns", remedy="Give data with the table's columns."
        )
    places: dict[str, int] = {}
    for place, name in enumerate(source.names):
        if name.casefold() in places:
            twin = source.names[places[name.casefold()]]
            raise InvalidInputError(
                f"The data has two columns that differ at most by case: {twin!r} and {name!r}.",
                kind="duplicate_column",
                remedy="Drop or rename one of them.",
            )
        places[name.casefold()] = place
    return places


def _extra_places(extra: Sequence[str], places: Mapping[str, int], wanted: Sequence[Column]) -> dict[str, int]:
    taken = {column.name.casefold() for column in wanted}
    carried: dict[str, int] = {}
    for name in extra:
        if name.casefold() not in places:
            raise InvalidInputError(
                f"Column {name!r} is not in the data.",
                kind="missing_column",
                remedy="Add it to the data, or do not name it.",
            )
        if name.casefold() not in taken:
            taken.add(name.casefold())
            carried[name] = places[name.casefold()]
    return carried


def _check_all_known(source: pa.Schema, target: TableSchema, carried: Mapping[str, int]) -> None:
    known_places = set(carried.values())
    unknown = [
        name for place, name in enumerate(source.names) if target.find(name) is None and place not in known_places
    ]
    reserved = [name for name in unknown if name.casefold() in HIDDEN_COLUMNS]
    if reserved:
        raise InvalidInputError(
            f"Column {reserved[0]!r} of the data has a reserved name.",
            kind="reserved_name",
            remedy="Drop it from the data: lakelib fills it itself.",
        )
    if unknown:
        raise InvalidInputError(
            f"The table has no column {', '.join(map(repr, unknown))}; its columns are {', '.join(target.names)}.",
            kind="unknown_column",
            remedy=f"{meant(unknown[0], target.names)} Drop the column from the data, or give merge_schema=True to add"
            " it to the table.".lstrip(),
        )


def _plan_column(
    source: pa.Schema, places: Mapping[str, int], column: Column, required: bool, rules: Rules
) -> AlignedColumn:
    place = places.get(column.name.casefold())
    if place is None:
        if required:
            raise InvalidInputError(
                f"Column {column.name!r} is missing from the data, and may not be NULL.",
                kind="missing_column",
                remedy="Add it to the data.",
            )
        return AlignedColumn(column=column, place=None, convert=None, required=False)
    convert = plan_column_conversion(source.field(place).type, column, rules)
    has_it = has_text(arrow_type(column.type))
    return AlignedColumn(column=column, place=place, convert=convert, required=required, has_text=has_it)


def plan_column_conversion(source: pa.DataType, column: Column, rules: Rules) -> Convert | None:
    """`plan_conversion` into a column of a table; raises InvalidInputError in place of RefusedError."""
    try:
        return plan_conversion(source, arrow_type(column.type), rules)
    except RefusedError as refused:
        raise refusal(column, source, refused) from None


def refusal(column: Column, source: pa.DataType, refused: RefusedError) -> InvalidInputError:
    """The error for a column whose type in the data does not lead to its type in the table."""
    name = f"{column.name}.{refused.path}" if refused.path else column.name
    wanted = "no such field" if refused.target is None else type_text(refused.target)
    found = source if not refused.path else refused.source
    return InvalidInputError(
        f"Column {name!r} has type {found} in the data and {wanted} in the table.",
        kind="wrong_type",
        remedy=refused.remedy,
    )


def _aligned_array(batch: pa.RecordBatch, aligned: AlignedColumn, wrong: list[WrongValue]) -> pa.Array:
    """The column's values; what is wrong with some of them goes to `wrong`."""
    if aligned.place is None:
        return pa.nulls(batch.num_rows, arrow_type(aligned.column.type))
    array = batch.column(aligned.place)
    converted = array if aligned.convert is None else try_convert(array, aligned.column, aligned.convert, wrong)
    if aligned.required and converted.null_count:
        wrong += _nulls(converted, aligned.column)
    if aligned.has_text and converted.type == arrow_type(aligned.column.type):
        wrong += _wrong_texts(converted, aligned.column)
    return converted


def _nulls(array: pa.Array, column: Column) -> Iterator[WrongValue]:
    for row in pc.indices_nonzero(array.is_null())[:MOST_COUNTED].to_pylist():
        yield WrongValue(
            row=row,
            before=f"Column {column.name!r} is NULL in",
            behind=", and may not be NULL",
            kind="null_value",
            remedy="Give a value, or leave the row out.",
        )


def _wrong_texts(array: pa.Array, column: Column) -> Iterator[WrongValue]:
    for row, value in wrong_texts(array, _MOST_TEXTS):
        shown = repr(value) if len(value) <= _MOST_SHOWN_BYTES else f"{value[:_MOST_SHOWN_BYTES]!r}…"
        yield WrongValue(
            row=row,
            before=f"Column {column.name!r},",
            behind=f": {shown} is no text in UTF-8",
            kind="wrong_value",
            remedy="Decode it by its own encoding before writing, or keep bytes in a column of type binary.",
        )


def try_convert(array: pa.Array, column: Column, convert: Convert, wrong: list[WrongValue]) -> pa.Array:
    """The converted array; or the array as it is, and to `wrong` goes what of it does not convert."""
    try:
        return convert(array)
    except pa.ArrowException:
        rows = failing_rows(convert, array, MOST_COUNTED)
        wrong += [_unconverted(array, column, row) for row in rows or [first_failing_row(convert, array)]]
        return array


def _unconverted(array: pa.Array, column: Column, row: int) -> WrongValue:
    return WrongValue(
        row=row,
        before=f"Column {column.name!r},",
        behind=f": {shown_value(array, row)} does not convert exactly from {array.type} to {column.type}",
        kind="wrong_value",
        remedy=_ROUND if "[ns" in str(array.type) else "Correct or round the value before writing.",
    )


def convert_array(array: pa.Array, column: Column, convert: Convert) -> pa.Array:
    """The converted array. Raises WrongValuesError with column, rows and values of what does not convert."""
    wrong: list[WrongValue] = []
    converted = try_convert(array, column, convert, wrong)
    if wrong:
        raise wrong_values(wrong, None)
    return converted


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAlignment:
    """How rows of files of one schema become rows of the wanted columns."""

    file_columns: tuple[str, ...]
    """The names of the columns to read from such a file."""
    wanted: tuple[Column, ...]
    names: tuple[str | None, ...]
    """For each wanted column its name in the file; None if the file is older than the column."""
    schema: pa.Schema
    """Of the wanted columns."""

    def apply(self, table: pa.Table) -> pa.Table:
        """The wanted columns in order, then the hidden columns that the table has. Copies only what it converts."""
        hidden = [name for name in HIDDEN_COLUMNS if name in table.column_names]
        if not self.wanted:
            return table.select(hidden)
        columns = [self._column(table, name, column) for name, column in zip(self.names, self.wanted, strict=True)]
        columns += [table.column(name) for name in hidden]
        schema = pa.schema(list(self.schema) + [hidden_field(name) for name in hidden]) if hidden else self.schema
        return pa.Table.from_arrays(columns, schema=schema)

    def _column(self, table: pa.Table, name: str | None, column: Column) -> pa.ChunkedArray:
        wanted = arrow_type(column.type)
        if name is None:
            return pa.chunked_array([pa.nulls(table.num_rows, wanted)])
        stored = table.column(name)
        convert = plan_column_conversion(stored.type, column, _FILE_RULES)
        if convert is None:
            return stored
        return pa.chunked_array([convert_array(chunk, column, convert) for chunk in stored.chunks], type=wanted)


_FILE_RULES = Rules(explicit=True, drop_extra=True)
"""A file may be newer than the schema it is read under, as after a rollback: values that still fit are read."""


def plan_file_alignment(file: TableSchema, wanted: Sequence[Column]) -> FileAlignment:
    """How rows of files of schema `file` become rows of the wanted columns; columns are matched by id.

    `_commit` and `_op` are not named here: those that a table has are always carried along.
    """
    if any(column.name in HIDDEN_COLUMNS for column in wanted):
        raise ValueError("hidden columns are carried along, never wanted by id")
    stored = [file.by_id(column.id) for column in wanted]
    names = tuple(None if column is None else column.name for column in stored)
    return FileAlignment(
        file_columns=tuple(name for name in names if name is not None),
        wanted=tuple(wanted),
        names=names,
        schema=arrow_schema(wanted),
    )


def merge_source_columns(
    source: pa.Schema,
    target: TableSchema,
    next_id: int,
    *,
    explicit_cast: bool,
    ignore: Sequence[str] = (),
    fixed_ids: frozenset[int] = frozenset(),
) -> TableSchema | None:
    """The table's schema with what the source adds: new nullable columns and wider types; None if it adds nothing.

    New columns take ids from `next_id`. `ignore` names source columns that are not stored. Columns of `fixed_ids`
    (primary key, partition) keep their type. A type that is neither the same nor wider is refused with
    InvalidInputError; with `explicit_cast` the table's type stays.
    """
    places = places_by_name(source)
    ignored = {name.casefold() for name in ignore}
    merged = [_merged_column(source, places, column, ignored, explicit_cast, fixed_ids) for column in target.columns]
    known = {column.name.casefold() for column in target.columns} | ignored
    new = [source.field(place) for name, place in places.items() if name not in known]
    merged += [_new_column(field, column_id) for column_id, field in enumerate(new, start=next_id)]
    columns = tuple(merged)
    return None if columns == target.columns else TableSchema(id=target.id + 1, columns=columns)


def _merged_column(
    source: pa.Schema,
    places: Mapping[str, int],
    column: Column,
    ignored: Collection[str],
    explicit_cast: bool,
    fixed_ids: frozenset[int],
) -> Column:
    place = places.get(column.name.casefold())
    if place is None or column.name.casefold() in ignored:
        return column
    given = source.field(place).type
    try:
        merged = type_text(widened_type(arrow_type(column.type), given, explicit=explicit_cast))
    except RefusedError as refused:
        raise refusal(column, given, refused) from None
    if merged == column.type or (column.id in fixed_ids and explicit_cast):
        return column
    if column.id in fixed_ids:
        raise InvalidInputError(
            f"Column {column.name!r} has type {given} in the data and {column.type} in the table, and as a primary key "
            f"or partition column keeps its type.",
            kind="wrong_type",
            remedy="Cast it before writing, or give explicit_cast=True.",
        )
    return replace(column, type=merged)


def _new_column(field: pa.Field, column_id: int) -> Column:
    check_column_name(field.name)
    return Column(id=column_id, name=field.name, type=column_type_text(field.name, field.type), nullable=True)


def retyped(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch under this schema. A moment has a zone, or none, without being another number; what is NULL alone may
    come in any type."""
    columns = [_retyped(column, each.type) for column, each in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _retyped(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(column.type):
        return column.view(kind)
    return pa.nulls(len(column), kind) if column.null_count == len(column) else column.cast(kind)
