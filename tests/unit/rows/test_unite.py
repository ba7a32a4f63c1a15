"""What files have together."""

import pyarrow as pa
import pytest

from lakelib.errors import InvalidInputError
from lakelib.model.schema import Column
from lakelib.rows.unite import TargetColumns, unite

ID = Column(id=1, name="Id", type="int")
AMOUNT = Column(id=2, name="amount", type="decimal(10,2)")
CASTS = TargetColumns(columns=(ID, AMOUNT), explicit_cast=True)


def united(target: TargetColumns, *schemas: dict[str, pa.DataType], are_text: bool = False) -> dict[str, pa.DataType]:
    found: dict[str, pa.Field] = {}
    for schema in schemas:
        found = unite(found, pa.schema(list(schema.items())), target, are_text=are_text)
    return {field.name: field.type for field in found.values()}


def test_all_columns_are_there_each_once_as_it_is_named_first() -> None:
    found = united(TargetColumns(), {"a": pa.int64(), "B": pa.string()}, {"b": pa.string(), "c": pa.bool_()})
    assert found == {"a": pa.int64(), "B": pa.string(), "c": pa.bool_()}


def test_the_tables_columns_have_the_tables_types() -> None:
    found = united(CASTS, {"id": pa.int64(), "amount": pa.string()}, {"ID": pa.int8(), "amount": pa.float64()})
    assert found == {"id": pa.int32(), "amount": pa.decimal128(10, 2)}


def test_unasked_no_type_becomes_another_that_cannot_hold_it() -> None:
    target = TargetColumns(columns=(ID,))
    assert united(target, {"id": pa.int16()}) == {"id": pa.int32()}
    with pytest.raises(InvalidInputError, match="Column 'Id' has type int64 in the data and int in the table"):
        united(target, {"id": pa.int16()}, {"id": pa.int64()})


def test_a_table_that_takes_wider_types_gets_the_widest() -> None:
    target = TargetColumns(columns=(ID,), merge_schema=True)
    assert united(target, {"id": pa.int64()}, {"id": pa.int32()}) == {"id": pa.int64()}
    fixed = TargetColumns(columns=(ID,), merge_schema=True, fixed=frozenset(["id"]))
    with pytest.raises(InvalidInputError, match="int64"):
        united(fixed, {"id": pa.int64()})


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.null(), pa.string(), pa.string()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.string()),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (
            pa.struct({"a": pa.int32()}),
            pa.struct({"A": pa.int64(), "b": pa.null()}),
            pa.struct({"a": pa.int64(), "b": pa.null()}),
        ),
    ],
    ids=str,
)
def test_other_columns_have_the_type_that_holds_all_values(
    one: pa.DataType, other: pa.DataType, both: pa.DataType
) -> None:
    assert united(TargetColumns(), {"x": one}, {"x": other}) == {"x": both}


def test_types_that_no_type_holds_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="Column 'x' has type string, and int64 in files before") as raised:
        united(TargetColumns(), {"x": pa.int64()}, {"x": pa.string()})
    assert raised.value.kind == "wrong_type"


def test_numbers_in_text_are_whole_or_not_as_they_come() -> None:
    assert united(TargetColumns(), {"x": pa.int64()}, {"x": pa.float64()}, are_text=True) == {"x": pa.float64()}
    with pytest.raises(InvalidInputError):
        united(TargetColumns(), {"x": pa.int64()}, {"x": pa.float64()})
