"""SQL over tables on S3: all of it streams, for the engine reaches no network."""

import pyarrow as pa
import pytest

from lakelib import Lake
from tests.acceptance.support import NewTable

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])


@pytest.fixture(scope="module")
def storage_kind() -> str:
    return "s3"


def test_a_query_reads_tables_on_s3(lake: Lake, new_table: NewTable) -> None:
    one, other = new_table(SCHEMA, primary_key=["id"]), new_table(SCHEMA, primary_key=["id"])
    one.upsert(pa.table({"id": [1, 2, 3], "n": [1, 1, 1]}, schema=SCHEMA))
    one.upsert(pa.table({"id": [2], "n": [5]}, schema=SCHEMA))
    other.upsert(pa.table({"id": [2, 3], "n": [10, 20]}, schema=SCHEMA))
    query = f"SELECT a.id, a.n + b.n AS s FROM {one.name} a JOIN {other.name} b ON a.id = b.id WHERE a.n > 1"

    result = lake.sql(query)

    assert result.to_arrow().to_pylist() == [{"id": 2, "s": 15}]
    assert "READ_PARQUET" not in result.explain().plan
