"""Jobs whose files and whose lake are on S3: Spark has no hadoop-aws, and needs none."""

import json
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lakelib
from jobs import append, sql, upsert
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from tests.conftest import BUCKET
from tests.jobs.conftest import rows_of


@pytest.fixture
def landing(s3_settings: StorageSettings) -> str:
    """A folder with Parquet and CSV files of two rows each."""
    uri = f"s3://{BUCKET}/{uuid4().hex}"
    storage = open_storage(uri, s3_settings)
    for number in range(2):
        with storage.open_output(f"parquet/{number}.parquet") as stream:
            pq.write_table(pa.table({"id": [2 * number, 2 * number + 1], "name": ["a", "b"]}), stream)
    storage.write_bytes("csv/0.csv", b"id,name\n7,x\n8,y\n")
    return uri


def test_files_and_queries_on_s3_go_to_a_table_on_s3(
    landing: str,
    s3_settings: StorageSettings,
    catalog_url: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAKE_S3_ENDPOINT", str(s3_settings.s3_endpoint))
    monkeypatch.setenv("LAKE_S3_REGION", "us-east-1")
    monkeypatch.setenv("LAKE_S3_ACCESS_KEY_ID", str(s3_settings.s3_access_key))
    monkeypatch.setenv("LAKE_S3_SECRET_ACCESS_KEY", str(s3_settings.s3_secret_key))
    monkeypatch.setenv("LAKE_WAREHOUSE", f"s3://{BUCKET}/{uuid4().hex}")
    monkeypatch.setenv("LAKE_CATALOG", catalog_url)
    with lakelib.connect() as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.orders", "id BIGINT NOT NULL, name STRING", primary_key=["id"], buckets=2)
        assert upsert.main(["shop.orders", "--path", f"{landing}/parquet/*.parquet"], spark) == 0
        assert rows_of(table) == [(0, "a"), (1, "b"), (2, "a"), (3, "b")]
        header = ["--option", "header=true"]
        assert (
            append.main(
                ["shop.orders", "--format", "csv", "--path", f"{landing}/csv", "--where", "id > 7", *header], spark
            )
            == 0
        )
        views = ["--view", f"p=parquet:{landing}/parquet", "--lake-view", "t=shop.orders"]
        query = ["--sql", "SELECT t.id, concat(t.name, p.name) AS name FROM t JOIN p ON t.id = p.id"]
        assert sql.main(["--into", "shop.orders", "--mode", "upsert", *views, *query], spark) == 0
        assert rows_of(table) == [(0, "aa"), (1, "bb"), (2, "aa"), (3, "bb"), (8, "y")]
        result = tmp_path / "result.json"
        avro = ["--format", "avro", "--path", landing, "--result", str(result)]
        assert append.main(["shop.orders", *avro], spark) == 3
        assert json.loads(result.read_text())["error"]["kind"] == "unsupported_source"
