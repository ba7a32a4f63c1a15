"""Storage. Reads a source file of any format: what is wanted of its rows is one plain value, which a task gets too."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column, TableSchema
from lakelib.rows.align import convert_array, plan_alignment, plan_column_conversion
from lakelib.rows.convert import Rules
from lakelib.rows.types import arrow_schema, arrow_type
from lakelib.storage.filesystem import Storage
from lakelib.storage.source_files import SourceFile, SourceRows, naming, parquet_schema, read_parquet
from lakelib.storage.source_text import (
    CsvDialect,
    TextTypes,
    csv_schema,
    is_in_json,
    json_schema,
    read_csv,
    read_json,
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
    types: TextTypes
    optional: tuple[str, ...]
    """Columns that JSON may have without having them in its first lines."""
    json_fields: pa.Schema | None = None
    """What all JSON files are read as."""

    @classmethod
    def of(
        cls,
        format: str,
        options: Mapping[str, str],
        columns: Sequence[str] | None,
        declared: Sequence[Column],
        known: Sequence[Column],
        required: Collection[str],
    ) -> "SourceReader":
        """Raises InvalidInputError for what only Spark's reader can do."""
        obstacle = find_obstacle(format, options, declared)
        if obstacle:
            raise InvalidInputError(
                f"{obstacle[0].upper()}{obstacle[1:]} is not read without Spark's own reader.",
                kind="unsupported_source",
                remedy="Convert the files to Parquet, or put them where Spark's reader reaches them.",
            )
        typed = declared or known
        needed = {name.casefold() for name in required}
        return cls(
            format=format,
            dialect=_dialect(options),
            columns=None if columns is None and not declared else tuple(columns or (each.name for each in declared)),
            declared=TableSchema(id=1, columns=tuple(declared)) if declared else None,
            types=TextTypes(columns={column.name.casefold(): column for column in typed}),
            optional=tuple(column.name for column in typed if column.name.casefold() not in needed),
        )

    def prepared(self, storage: Storage, first: SourceFile) -> "SourceReader":
        """The reader, which has learnt from the first file what JSON does not say in each line."""
        if self.format != "json":
            return self
        seen = json_schema(storage, first, self.types)
        names = {name.casefold() for name in seen.names}
        later = [self.types.columns[name.casefold()] for name in self.optional if name.casefold() not in names]
        fields = [*seen, *(pa.field(column.name, arrow_type(column.type)) for column in later)]
        return replace(self, json_fields=pa.schema([each for each in fields if self._is_wanted(each.name)]))

    def schema_of(self, storage: Storage, file: SourceFile) -> pa.Schema:
        """Of the file's rows. Raises InvalidInputError if the file lacks a column that is asked for."""
        if self.declared is not None:
            return arrow_schema(self.declared.columns)
        found = self._file_schema(storage, file)
        present = {each.name.casefold() for each in found}
        said = [self._folder_field(name) for name, _ in file.folder_values if name.casefold() not in present]
        schema = pa.schema([each for each in [*found, *said] if self._is_wanted(each.name)])
        self._check_columns(file, schema)
        return schema

    def read(self, storage: Storage, file: SourceFile, row_groups: Sequence[int] | None) -> Iterator[SourceRows]:
        alignment = None
        for rows in self._file_rows(storage, file, row_groups):
            with naming(file.uri, rows.first_row):
                batch = self._selected(self._with_folder_values(rows.batch, file))
                if self.declared is not None:
                    explicit = self.format != "parquet"
                    alignment = alignment or plan_alignment(
                        batch.schema, self.declared, required_ids=frozenset(), explicit_cast=explicit
                    )
                    batch = alignment.apply(batch)
            yield SourceRows(first_row=rows.first_row, batch=batch)

    def _file_schema(self, storage: Storage, file: SourceFile) -> pa.Schema:
        match self.format:
            case "parquet":
                return parquet_schema(storage, file)
            case "csv":
                return csv_schema(storage, file, self.dialect, self.types)
            case _:
                return self.json_fields or pa.schema([])

    def _file_rows(self, storage: Storage, file: SourceFile, row_groups: Sequence[int] | None) -> Iterator[SourceRows]:
        match self.format:
            case "parquet":
                return read_parquet(storage, file, self.columns, row_groups)
            case "csv":
                return read_csv(storage, file, self.dialect, self.types, self._is_wanted)
            case _:
                fields = self.json_fields or pa.schema([])
                return read_json(storage, file, fields, self.types, strict=self.columns is None)

    def _check_columns(self, file: SourceFile, schema: pa.Schema) -> None:
        present = {name.casefold() for name in schema.names}
        missing = next((name for name in self.columns or () if name.casefold() not in present), None)
        if missing is not None:
            raise InvalidInputError(
                f"The file {file.uri} has no column {missing!r}, which is asked for.",
                kind="unknown_column",
                remedy="Name its columns as they are there.",
            )

    def _is_wanted(self, name: str) -> bool:
        return self.columns is None or name.casefold() in {column.casefold() for column in self.columns}

    def _selected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = [name for name in batch.schema.names if self._is_wanted(name)]
        return batch if len(names) == batch.num_columns else batch.select(names)

    def _with_folder_values(self, batch: pa.RecordBatch, file: SourceFile) -> pa.RecordBatch:
        present = {name.casefold() for name in batch.schema.names}
        for name, text in file.folder_values:
            if name.casefold() not in present:
                batch = batch.append_column(self._folder_field(name), self._folder_array(name, text, batch.num_rows))
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
