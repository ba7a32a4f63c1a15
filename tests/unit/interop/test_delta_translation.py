"""How columns, values and masks are called in a Delta log."""

import json
from uuid import UUID

import pytest

from lakelib.interop.delta.schema import Mixed, Naming, find_naming, find_type_changes, schema_string
from lakelib.interop.delta.values import bound_text, log_path, vector_of, z85
from lakelib.model.files import Mask
from lakelib.model.schema import Column, TableSchema
from lakelib.model.sortable import encode


def schema(number: int, **columns: int) -> TableSchema:
    """Names with the ids of their columns."""
    return TableSchema(id=number, columns=tuple(Column(id=id_, name=name, type="int") for name, id_ in columns.items()))


FIRST = schema(1, a=1, b=2)


@pytest.mark.parametrize(
    ("now", "stored", "expected"),
    [
        (FIRST, [FIRST], Naming(physical=None)),
        (schema(2, a=1), [FIRST], Naming(physical=None)),
        (schema(2, a=1, b=2, c=3), [FIRST], Naming(physical=None)),
        (schema(2, a=1, c=2), [FIRST], Naming(physical={1: "a", 2: "b"})),
        (schema(2, a=1, b=3), [FIRST], Naming(physical={1: "a", 3: "b-3"})),
        (schema(2, a=2, b=1), [FIRST], Naming(physical={2: "b", 1: "a"})),
        (schema(2, a=1, c=2), [FIRST, schema(2, a=1, c=2)], Mixed(column="c")),
        (schema(2, a=1, b=3), [FIRST, schema(2, a=1, b=3)], Mixed(column="b")),
    ],
    ids=["same", "dropped", "added", "renamed", "added again", "exchanged", "two names", "two meanings"],
)
def test_a_column_is_called_as_in_all_files(
    now: TableSchema, stored: list[TableSchema], expected: Naming | Mixed
) -> None:
    assert find_naming(now, stored, None) == expected


def test_a_mapping_that_is_there_stays() -> None:
    assert find_naming(FIRST, [FIRST], {1: "a", 2: "b"}) == Naming(physical={1: "a", 2: "b"})


def test_narrower_types_of_files_are_told() -> None:
    old = TableSchema(id=1, columns=(Column(id=1, name="n", type="int"), Column(id=2, name="s", type="struct<a:int>")))
    now = TableSchema(
        id=2, columns=(Column(id=1, name="n", type="bigint"), Column(id=2, name="s", type="struct<a:int,b:string>"))
    )

    changes = find_type_changes(now, [old, now])
    told = json.loads(schema_string(now.columns, Naming(physical=None), changes))["fields"]

    assert changes == {1: ("int",)}
    assert told[0]["metadata"] == {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    assert told[1]["type"]["fields"][1] == {"name": "b", "type": "string", "nullable": True, "metadata": {}}


@pytest.mark.parametrize(
    ("type_text", "raw", "expected"),
    [
        ("bigint", -5, "-5"),
        ("decimal(38,10)", -12345678901234567890, "-1234567890.1234567890"),
        ("double", 0.1, "0.1"),
        ("double", float("nan"), None),
        ("double", float("-inf"), None),
        ("string", 'a"\u2028', '"a\\"\u2028"'),
        ("string", "x" * 64, None),
        ("binary", b"a", None),
        ("boolean", True, None),
        ("date", -1, '"1969-12-31"'),
        ("date", 3_000_000, None),
        ("timestamp", -1, '"1969-12-31T23:59:59.999999Z"'),
        ("timestamp_ntz", 0, '"1970-01-01T00:00:00"'),
    ],
)
def test_a_bound_is_exact_or_absent(type_text: str, raw: object, expected: str | None) -> None:
    assert bound_text(type_text, encode(type_text, raw)) == expected  # type: ignore[arg-type]


def test_a_path_is_a_uri() -> None:
    assert log_path("part=a%2Fb/é~x.parquet") == "part=a%252Fb/%C3%A9~x.parquet"


def test_masks_are_named_without_a_copy() -> None:
    """The texts are those of Delta's protocol, and of the standard that it names."""
    name = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    large = Mask(file_id=1, path=f"_masks/deletion_vector_{name}.bin", inline=None, size_bytes=40, cardinality=6)
    small = Mask(file_id=1, path=None, inline=bytes.fromhex("864fd26fb559f7"), size_bytes=7, cardinality=6)

    assert z85(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"
    assert vector_of(large).unique_id == "u_masks^-aqEH.-t@S}K{vb[*k^@1"
    assert (vector_of(small).storage_type, len(vector_of(small).path_or_inline_dv)) == ("i", 10)
