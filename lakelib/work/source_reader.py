"""Work. Reads a source file of any format: what is wanted of its rows is one plain value, which a task gets too."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.align import convert_array, places_by_name, plan_alignment, plan_column_conversion
from lakelib.rows.convert import Rules
from lakelib.rows.types import arrow_schema, arrow_type
from lakelib.rows.unite import TargetColumns, unite
from lakelib.storage.filesystem import Storage
from lakelib.work.source_files import (
    FindLines,
    Looked,
    SourceFile,
    SourceRows,
    if_unchanged,
    look_into_parquet,
    naming,
    read_parquet,
    unchanged,
)
from lakelib.work.source_text import (
    CsvDialect,
    TextTypes,
    find_csv_lines,
    find_json_lines,
    is_in_json,
    look_into_csv,
    look_into_json,
    read_csv,
    read_json,
    told_type,
)

FORMATS = ("parquet", "csv", "json")

_DEFAULTS = {"encoding": "utf-8", "charset": "utf-8", "multiline": "false", "inferschema": "false", "mode": "failfast"}
"""Spark's options whose other values need Spark's reader."""
_DIALECT = ("header", "sep", "delimiter", "quote", "escape", "nullvalue")


def find_obstacle(format: str, options: Mapping[str, str], columns: Sequence[Column]) -> str | None:
    """Why files of a format, with Spark's reader options and columns of these types, are for Spark to read; None if
    this module reads them. It has no value of an option that may be a secret."""
    if format not in FORMATS:
        return f"the format {format!r}"
    for name, value in options.items():
        folded = name.casefold()
        if folded not in _DIALECT and _DEFAULTS.get(folded) != value.casefold():
            return f"the option {name}={value}" if folded in _DEFAULTS else f"the option {name}"
    for column in columns:
        kind = arrow_type(column.type)
        if (format == "csv" and pa.types.is_nested(kind)) or (format == "json" and not is_in_json(kind)):
            return f"the type {column.type} of column {column.name!r} in {format}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReader:
    format: str
    dialect: CsvDialect
    columns: tuple[str, ...] | None
    """Just these are read; None is all."""
    declared: TableSchema | None
    """What the rows become before anything else is done with them."""
    target: TargetColumns
    """What the table that the rows are for asks of each file."""
    types: TextTypes
    json_fields: pa.Schema | None = None
    """What all JSON files are read as."""

    @classmethod
    def of(
        cls,
        format: str,
        options: Mapping[str, str],
        columns: Sequence[str] | None,
        declared: Sequence[Column],
        target: TargetColumns,
    ) -> "SourceReader":
        """Raises InvalidInputError for what only Spark's reader can do."""
        obstacle = find_obstacle(format, options, declared)
        if obstacle:
            raise InvalidInputError(
                f"{obstacle[0].upper()}{obstacle[1:]} is not read without Spark's own reader.",
                kind="unsupported_source",
                remedy="Convert the files to Parquet, or put them where Spark's reader reaches them.",
            )
        typed = declared or target.columns
        return cls(
            format=format,
            dialect=_dialect(options),
            columns=None if columns is None and not declared else tuple(columns or (each.name for each in declared)),
            declared=TableSchema(id=1, columns=tuple(declared)) if declared else None,
            target=target,
            types=TextTypes(columns={column.name.casefold(): column for column in typed}),
        )

    @property
    def is_text(self) -> bool:
        return self.format != "parquet"

    def look_into(self, storage: Storage, file: SourceFile) -> SourceFile | None:
        """The file with the wanted ones of its columns, those that its folders say included; None if it has no row.
        Raises InvalidInputError for a file that is not what it should be, or has two columns of one name."""
        found = self._look(storage, file)
        if found is None:
            return None
        with naming(file.uri, 0):
            present = places_by_name(found.schema) if len(found.schema) else {}
        values = tuple(each for each in file.folder_values if each[0].casefold() not in present)
        fields = [*found.schema, *(self._folder_field(name) for name, _ in values), *_logged_fields(file)]
        schema = pa.schema([each for each in fields if self._is_wanted(each.name)])
        return replace(file, schema=schema, row_bytes=found.row_bytes, folder_values=values)

    def united(self, files: Sequence[SourceFile]) -> tuple["SourceReader", pa.Schema]:
        """The reader of just these files, which were looked into, and the schema of their rows. Raises
        InvalidInputError for a column that is asked for and in no file, or whose types do not go together."""
        united: dict[str, pa.Field] = {}
        for file in files:
            with naming(file.uri, 0):
                united = unite(united, file.schema or pa.schema([]), self.target, are_text=self.is_text)
        schema = pa.schema(
            [field.with_type(told_type(field.type)) if self.is_text else field for field in united.values()]
        )
        if self.declared is not None:
            schema = arrow_schema(self.declared.columns)
        elif not files:
            schema = arrow_schema([column for column in self.target.columns if self._is_wanted(column.name)])
        elif self.format == "json":
            schema = self._with_later_fields(schema)
        self._check_columns(schema)
        return replace(self, json_fields=schema if self.format == "json" else None), schema

    def _with_later_fields(self, schema: pa.Schema) -> pa.Schema:
        """A file may have fields of the table that no file has in its first lines, if it need not have them at all."""
        told = {name.casefold() for name in schema.names} | self.target.roles
        later = [column for name, column in self.types.columns.items() if name not in told and self._is_wanted(name)]
        return pa.schema([*schema, *arrow_schema(later)])

    def read(self, storage: Storage, file: SourceFile, row_groups: Sequence[int] | None) -> Iterator[SourceRows]:
        """The rows as the file has them, or as they are declared. Raises RetryableError if it is not the file that was
        listed."""
        alignment = None
        with unchanged(storage, file):
            for rows in self._file_rows(storage, file, row_groups):
                with naming(file.uri, rows.first_row, self.line_finder(storage, file), rows.numbers):
                    batch = self._selected(self._with_folder_values(rows.batch, file))
                    if self.declared is not None:
                        alignment = alignment or plan_alignment(
                            batch.schema, self.declared, required_ids=frozenset(), explicit_cast=self._casts
                        )
                        batch = alignment.apply(batch)
                yield replace(rows, batch=batch)

    def line_finder(self, storage: Storage, file: SourceFile) -> FindLines | None:
        """None for a format without lines."""
        match self.format:
            case "parquet":
                return None
            case "csv":
                return partial(find_csv_lines, storage, file, self.dialect)
            case _:
                return partial(find_json_lines, storage, file)

    @property
    def _casts(self) -> bool:
        """Text says no types."""
        return self.is_text or self.target.explicit_cast

    def _look(self, storage: Storage, file: SourceFile) -> Looked | None:
        with if_unchanged(storage, file):
            match self.format:
                case "parquet":
                    return look_into_parquet(storage, file)
                case "csv":
                    return look_into_csv(storage, file, self.dialect, self.types)
                case _:
                    return look_into_json(storage, file)

    def _file_rows(self, storage: Storage, file: SourceFile, row_groups: Sequence[int] | None) -> Iterator[SourceRows]:
        match self.format:
            case "parquet":
                return read_parquet(storage, file, self.columns, row_groups)
            case "csv":
                return read_csv(storage, file, self.dialect, self.types, self._is_wanted)
            case _:
                return read_json(storage, file, self._fields_of(file), self.types, strict=self.columns is None)

    def _fields_of(self, file: SourceFile) -> pa.Schema:
        """What a JSON file is read as: of the columns that each file has to have those that it has."""
        lacking = self.target.roles - file.names
        lacking |= {name.casefold() for name, _ in file.folder_values}
        fields = self.json_fields or pa.schema([])
        return pa.schema([each for each in fields if each.name.casefold() not in lacking])

    def _check_columns(self, schema: pa.Schema) -> None:
        present = {name.casefold() for name in schema.names}
        missing = next((name for name in self.columns or () if name.casefold() not in present), None)
        if missing is not None:
            raise InvalidInputError(
                f"No file has a column {missing!r}, which is asked for.",
                kind="unknown_column",
                remedy="Name the columns as they are there.",
            )

    def _is_wanted(self, name: str) -> bool:
        return self.columns is None or name.casefold() in {column.casefold() for column in self.columns}

    def _selected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = [name for name in batch.schema.names if self._is_wanted(name)]
        return batch if len(names) == batch.num_columns else batch.select(names)

    def _with_folder_values(self, batch: pa.RecordBatch, file: SourceFile) -> pa.RecordBatch:
        for name, text in file.folder_values:
            batch = batch.append_column(self._folder_field(name), self._folder_array(name, text, batch.num_rows))
        for name, value in () if file.logged is None else file.logged.values:
            batch = batch.append_column(pa.field(name, value.type), pa.repeat(value, batch.num_rows))
        return batch

    def _folder_field(self, name: str) -> pa.Field:
        column = self.types.of(name)
        return pa.field(name, pa.string() if column is None else arrow_type(column.type))

    def _folder_array(self, name: str, text: str | None, row_count: int) -> pa.Array:
        value = pa.array([text], pa.string())
        column = self.types.of(name)
        convert = None if column is None else plan_column_conversion(value.type, column, Rules(explicit=True))
        if column is not None and convert is not None:
            value = convert_array(value, column, convert)
        return pa.repeat(value[0], row_count)


def _logged_fields(file: SourceFile) -> list[pa.Field]:
    return [] if file.logged is None else [pa.field(name, value.type) for name, value in file.logged.values]


def _dialect(options: Mapping[str, str]) -> CsvDialect:
    given = {name.casefold(): value for name, value in options.items()}
    delimiter = given.get("sep") or given.get("delimiter") or ","
    delimiter = "\t" if delimiter == "\\t" else delimiter
    for name, value in (("sep", delimiter), ("quote", given.get("quote", "")), ("escape", given.get("escape", ""))):
        if len(value.encode()) > 1:
            raise InvalidInputError(
                f"The option {name} is {value!r}, which is not one ASCII character.",
                kind="invalid_option",
                remedy="Give one character.",
            )
    quote, escape = given.get("quote", '"') or None, given.get("escape") or None
    return CsvDialect(
        header=given.get("header", "false").casefold() == "true",
        delimiter=delimiter,
        quote=quote,
        escape=None if escape == quote else escape,
        null_text=given.get("nullvalue", ""),
    )
