"""What the catalog's rows say, as frozen values."""

import pickle

from lakelib.catalog.records import columns_to_json, schema_from_json
from lakelib.model.schema import Column, TableSchema

SCHEMA = TableSchema(id=3, columns=(Column(id=1, name="id", type="bigint", nullable=False),))


def test_the_same_text_of_a_schema_gives_the_same_value() -> None:
    text = columns_to_json(SCHEMA)
    assert schema_from_json(3, text) == SCHEMA
    assert schema_from_json(3, columns_to_json(SCHEMA)) is schema_from_json(3, text)
    assert schema_from_json(4, text) == TableSchema(id=4, columns=SCHEMA.columns)


def test_equal_schemas_have_one_hash_wherever_they_come_from() -> None:
    twin = TableSchema(id=3, columns=(Column(id=1, name="id", type="bigint", nullable=False),))
    assert hash(twin) == hash(SCHEMA) == hash(pickle.loads(pickle.dumps(SCHEMA)))
    assert hash(TableSchema(id=4, columns=SCHEMA.columns)) != hash(SCHEMA)
