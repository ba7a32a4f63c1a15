"""Schemas are declared with Arrow, Spark or DDL text."""

from typing import Any

import pyarrow as pa
import pytest

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.plan.declare import declare_schema

ORDERS = (
    Column(id=1, name="order_id", type="bigint", nullable=False, comment="key"),
    Column(id=2, name="dt", type="date"),
    Column(id=3, name="a b", type="array<struct<x:int,`y z`:decimal(10,2)>>"),
    Column(id=4, name="m", type="map<string,timestamp_ntz>"),
)


class SparkType:
    """Stands for a Spark StructType, of which only the JSON value is looked at."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def jsonValue(self) -> Any:  # noqa: N802 - Spark's name
        return self._value


def spark_struct(**fields: Any) -> SparkType:
    return SparkType(
        {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True} for name, kind in fields.items()]}
    )


def test_arrow_ddl_and_spark_declare_the_same_columns() -> None:
    arrow = pa.schema(
        [
            pa.field("order_id", pa.int64(), nullable=False, metadata={"comment": "key"}),
            ("dt", pa.date32()),
            ("a b", pa.list_(pa.struct([("x", pa.int32()), ("y z", pa.decimal128(10, 2))]))),
            ("m", pa.map_(pa.string(), pa.timestamp("us"))),
        ]
    )
    ddl = (
        "order_id BIGINT NOT NULL COMMENT 'key', dt DATE, "
        "`a b` ARRAY<STRUCT<x: INT, `y z`: DECIMAL(10, 2)>>, m MAP<STRING, TIMESTAMP_NTZ>"
    )
    element = {
        "type": "struct",
        "fields": [
            {"name": "x", "type": "integer", "nullable": True, "metadata": {}},
            {"name": "y z", "type": "decimal(10,2)", "nullable": True, "metadata": {}},
        ],
    }
    spark = SparkType(
        {
            "type": "struct",
            "fields": [
                {"name": "order_id", "type": "long", "nullable": False, "metadata": {"comment": "key"}},
                {"name": "dt", "type": "date", "nullable": True, "metadata": {}},
                {"name": "a b", "type": {"type": "array", "elementType": element, "containsNull": True}},
                {
                    "name": "m",
                    "type": {
                        "type": "map",
                        "keyType": "string",
                        "valueType": "timestamp_ntz",
                        "valueContainsNull": True,
                    },
                },
            ],
        }
    )
    assert declare_schema(arrow) == declare_schema(ddl) == declare_schema(spark) == ORDERS


_REQUIRED = pa.field("x", pa.int32(), nullable=False)
_SPARK_REQUIRED = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": False}]}


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("c STRUCT<x: INT NOT NULL COMMENT 'c'>", "c.x"),
        ("c ARRAY<STRUCT<a: INT NULL, x INT NOT NULL>>", "c.element.x"),
        ("c MAP<STRING, STRUCT<a: STRUCT<x: INT NOT NULL>>>", "c.value.a.x"),
        ("c MAP<STRUCT<x: INT NOT NULL>, INT>", "c.key.x"),
        (pa.schema([("c", pa.struct([_REQUIRED]))]), "c.x"),
        (pa.schema([("c", pa.list_(_REQUIRED))]), "c.element"),
        (pa.schema([("c", pa.large_list(pa.struct([_REQUIRED])))]), "c.element.x"),
        (pa.schema([("c", pa.map_(pa.string(), _REQUIRED.with_name("value")))]), "c.value"),
        (pa.schema([("c", pa.map_(pa.struct([_REQUIRED]), pa.int32()))]), "c.key.x"),
        (spark_struct(c=_SPARK_REQUIRED), "c.x"),
        (spark_struct(c={"type": "array", "elementType": "integer", "containsNull": False}), "c.element"),
        (spark_struct(c={"type": "array", "elementType": _SPARK_REQUIRED, "containsNull": True}), "c.element.x"),
        (
            spark_struct(c={"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": False}),
            "c.value",
        ),
    ],
)
def test_not_null_inside_of_a_column_is_refused(given: Any, place: str) -> None:
    """It could not be held to."""
    with pytest.raises(InvalidInputError, match=rf"^Column 'c': {place} is declared as NOT NULL.*nullable"):
        declare_schema(given)


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [
        ("a STRUCT<b: INT NULL>", "struct<b:int>"),
        ("a LONG", "bigint"),
        ("a DECIMAL", "decimal(10,0)"),
        ("a TIMESTAMP", "timestamp"),
        ("a BYTE", "tinyint"),
        ("a INT NULL", "int"),
        ("date DATE", "date"),
        ("a STRUCT<b INT>", "struct<b:int>"),
    ],
)
def test_spark_spellings_of_types_are_known(ddl: str, kind: str) -> None:
    (column,) = declare_schema(ddl)
    assert (column.type, column.nullable) == (kind, True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "no columns"),
        (pa.schema([]), "no columns"),
        ("a INT, A STRING", "'a' and 'A'"),
        ("a INT, a STRING", "'a' and 'a'"),
        ("_commit INT", "'_commit' is reserved"),
        (pa.schema([("_OP", pa.int8())]), "'_OP' is reserved"),
        (pa.schema([("", pa.int8())]), "no name"),
        (pa.schema([("u", pa.uint32())]), "Column 'u': Type uint32 is not supported. Declare bigint."),
        ("v VARCHAR(10)", "Column 'v': 'VARCHAR(10)' is not a supported column type"),
        ("a", "'a' is not supported in a schema"),
        ("a INT PRIMARY KEY", "'a INT PRIMARY KEY' is not supported in a schema"),
        ("a INT DEFAULT 3", "DEFAULT 3"),
        ("a FOO", "near 'FOO'"),
        ("a INT) ; DROP TABLE x (b INT", "is not a list of columns"),
        ("a INT) AS SELECT (1", "is not a list of columns"),
        ("a INT) USING parquet OPTIONS (b 1", "is not a list of columns"),
        ("a " + "ARRAY<" * 500 + "INT" + ">" * 500, "is not a list of columns"),
        (spark_struct(p={"type": "udt", "class": "x"}), "Column 'p': 'udt' is not a supported column type"),
        (spark_struct(v="void"), "Column 'v': 'void'"),
        (SparkType("integer"), "not a struct"),
        (42, "cannot be made from int"),
    ],
)
def test_what_is_no_schema_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        declare_schema(given)
    assert message in str(error.value)
    assert error.value.remedy
