"""Interop. A table and its partitions as a Hive metastore has them: columns in Hive's types, where the files are, and
what is known of them, as parameters."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakelib.errors import InvalidInputError
from lakelib.model.exports import HivePartition, HiveTable
from lakelib.model.schema import Column
from lakelib.rows.types import arrow_type, is_list_like

OWN = "lakelib."
"""How the names of lakelib's own parameters begin."""
NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"
_MOST_COMMENT = 256
"""Characters in a comment, at most."""

_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_PLAIN = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
}


def hive_type(kind: pa.DataType) -> str:
    """Both kinds of timestamps are Hive's one, which shows what is stored: UTC, or the wall clock."""
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        parts = (kind.field(index) for index in range(kind.num_fields))
        return f"struct<{','.join(f'{part.name}:{hive_type(part.type)}' for part in parts)}>"
    if pa.types.is_map(kind):
        return f"map<{hive_type(kind.key_type)},{hive_type(kind.item_type)}>"
    if is_list_like(kind):
        return f"array<{hive_type(kind.value_type)}>"
    return _PLAIN[str(kind)]


def check_registrable(table: HiveTable) -> None:
    """Raises InvalidInputError for a table that Hive has no place for."""
    for column in table.partition_by:
        if column.type == "binary":
            raise InvalidInputError(
                f"{table.name} is partitioned by {column.name!r}, and Hive has no partitions of binary values.",
                kind="unsupported_partition",
                remedy="Leave the table out of the metastore.",
            )


def describe_table(types: Any, table: HiveTable, database: str, name: str) -> Any:
    return types.Table(
        tableName=name,
        dbName=database,
        owner="lakelib",
        tableType="EXTERNAL_TABLE",
        sd=_storage(types, table, table.location),
        partitionKeys=[_field(types, column) for column in table.partition_by],
        parameters={"EXTERNAL": "TRUE", "external.table.purge": "false", "discover.partitions": "false"}
        | dict(table.parameters),
    )


def describe_partition(types: Any, table: HiveTable, partition: HivePartition, database: str, name: str) -> Any:
    return types.Partition(
        values=list(partition.values),
        dbName=database,
        tableName=name,
        sd=_storage(types, table, f"{table.location}/{partition.path}"),
        parameters=dict(partition.parameters),
    )


def is_told(found: Any, wanted: Any) -> bool:
    """Whether the metastore has all that it is to be told: its own parameters, which it adds and counts, aside."""
    known, told = _own(found.parameters), _own(wanted.parameters)
    return known == told and found.sd.location.replace("file:///", "file:/") == wanted.sd.location.replace(
        "file:///", "file:/"
    )


def _own(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in (parameters or {}).items() if name.startswith(OWN)}


def _storage(types: Any, table: HiveTable, location: str) -> Any:
    return types.StorageDescriptor(
        cols=[_field(types, column) for column in table.columns],
        location=location,
        inputFormat=_INPUT,
        outputFormat=_OUTPUT,
        compressed=False,
        numBuckets=-1,
        serdeInfo=types.SerDeInfo(serializationLib=_SERDE, parameters={"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def _field(types: Any, column: Column) -> Any:
    comment = column.comment[:_MOST_COMMENT] or None
    return types.FieldSchema(name=column.name.lower(), type=hive_type(arrow_type(column.type)), comment=comment)


def partition_values(texts: Sequence[str | None]) -> tuple[str, ...]:
    return tuple(NULL_VALUE if text is None else text for text in texts)
