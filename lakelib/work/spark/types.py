"""Pure. Spark's column types and Arrow's: the same types under two sets of names."""

import pyarrow as pa
from pyspark.sql import types as spark

from lakelib.errors import InvalidInputError

_PLAIN: dict[type[spark.DataType], pa.DataType] = {
    spark.BooleanType: pa.bool_(),
    spark.ByteType: pa.int8(),
    spark.ShortType: pa.int16(),
    spark.IntegerType: pa.int32(),
    spark.LongType: pa.int64(),
    spark.FloatType: pa.float32(),
    spark.DoubleType: pa.float64(),
    spark.StringType: pa.string(),
    spark.CharType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.BinaryType: pa.binary(),
    spark.DateType: pa.date32(),
    spark.TimestampType: pa.timestamp("us", "UTC"),
    spark.TimestampNTZType: pa.timestamp("us"),
    spark.NullType: pa.null(),
}
_SPARK_OF: dict[pa.DataType, type[spark.DataType]] = {
    arrow: kind for kind, arrow in _PLAIN.items() if kind not in (spark.CharType, spark.VarcharType)
}


def arrow_schema_of(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of a data frame. Raises InvalidInputError for a type that no table can have."""
    return pa.schema([_named_field(field) for field in schema.fields])


def spark_schema_of(schema: pa.Schema) -> spark.StructType:
    """The schema of a data frame of these rows; their types are those that a table's columns have."""
    return spark.StructType([_spark_field(field) for field in schema])


def _named_field(field: spark.StructField) -> pa.Field:
    try:
        return _arrow_field(field)
    except KeyError as unknown:
        raise InvalidInputError(
            f"Column {field.name!r} has Spark's type {field.dataType.simpleString()}, and no table can have"
            f" {unknown.args[0]}.",
            kind="unsupported_type",
            remedy="Cast it to another type, or leave it out.",
        ) from None


def _arrow_field(field: spark.StructField) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.dataType), field.nullable)


def _arrow_type(kind: spark.DataType) -> pa.DataType:
    """Raises KeyError with the type's text for one that Arrow rows cannot have."""
    match kind:
        case spark.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case spark.ArrayType():
            return pa.list_(_arrow_type(kind.elementType))
        case spark.MapType():
            return pa.map_(_arrow_type(kind.keyType), _arrow_type(kind.valueType))
        case spark.StructType():
            return pa.struct([_arrow_field(field) for field in kind.fields])
    found = _PLAIN.get(type(kind))
    if found is None:
        raise KeyError(kind.simpleString())
    return found


def _spark_field(field: pa.Field) -> spark.StructField:
    return spark.StructField(field.name, _spark_type(field.type), field.nullable)


def _spark_type(kind: pa.DataType) -> spark.DataType:
    if pa.types.is_decimal(kind):
        return spark.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return spark.ArrayType(_spark_type(kind.value_type))
    if pa.types.is_map(kind):
        return spark.MapType(_spark_type(kind.key_type), _spark_type(kind.item_type))
    if pa.types.is_struct(kind):
        return spark.StructType([_spark_field(field) for field in kind])
    return _SPARK_OF[kind]()
