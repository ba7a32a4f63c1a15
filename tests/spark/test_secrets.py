"""What Spark is told of a lake's secrets, and what it shows of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType

import lakelib
import lakelib.spark
from lakelib import Lake
from lakelib.settings import StorageSettings
from lakelib.spark.source import data_source
from tests.conftest import BUCKET

PASSWORD = "hunter%2Fswordfish"
SECRETS = ("hunter", "swordfish", "testing-secret")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, module_catalog_url: str, s3_settings: StorageSettings) -> Iterator[Lake]:
    """On S3, with a password that its server does not ask for."""
    settings = {name: getattr(s3_settings, name) for name in ("s3_endpoint", "s3_region")}
    keys = {"s3_access_key": s3_settings.s3_access_key, "s3_secret_key": s3_settings.s3_secret_key}
    url = module_catalog_url.replace("postgres:@", f"postgres:{PASSWORD}@")
    with lakelib.connect(f"s3://{BUCKET}/spark-secrets", url, **settings, **keys) as lake:
        lake.create_namespace("hidden")
        orders = lake.create_table("hidden.orders", "id bigint, v string", primary_key=["id"])
        orders.upsert(pa.table({"id": [1, 2], "v": ["a", "b"]}))
        lakelib.spark.register(spark, lake)
        yield lake


def test_spark_shows_no_secret(spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW hidden USING lake OPTIONS (path 'hidden.orders')")
    frames = [spark.table("hidden").where("id > 1"), lake.table("hidden.orders").scan().to_spark(spark)]
    shown: list[Any] = [sorted(spark.conf.getAll.items()), sorted(spark.sparkContext.getConf().getAll())]
    for frame in frames:
        frame.explain("extended")
        execution = frame._jdf.queryExecution()
        shown += [frame, execution.toString(), execution.logical().toJSON(), execution.executedPlan().toString()]
    shown += spark.sql("DESCRIBE EXTENDED hidden").collect() + spark.sql("SET -v").collect()
    told = f"{shown} {''.join(capsys.readouterr())}"

    assert [frame.count() for frame in frames] == [1, 2]
    assert not any(secret in told for secret in SECRETS)


def test_an_error_of_spark_tells_no_secret(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(Exception, match="nothing") as caught:
        spark.sql("CREATE TEMPORARY VIEW nothing USING lake OPTIONS (path 'hidden.nothing')").collect()

    assert not any(secret in f"{caught.value} {caught.value!r}" for secret in SECRETS)


def test_the_catalogs_password_is_in_no_task(lake: Lake) -> None:
    """Spark carries the source to a process that makes a reader, and what is left of both to the tasks."""
    source = data_source(lake.settings)(options={"path": "hidden.orders"})
    schema = StructType([StructField("id", LongType())])
    carried = cloudpickle.loads(cloudpickle.dumps(source))
    reader = carried.reader(schema)
    to_tasks = cloudpickle.dumps((carried, reader, reader.partitions()))

    assert PASSWORD.encode() in cloudpickle.dumps(source)
    assert PASSWORD.encode() not in to_tasks
    again, at_work, (group,) = cloudpickle.loads(to_tasks)
    assert again.name() == "lake"
    assert sum(batch.num_rows for batch in at_work.read(group)) == 2


def test_the_catalogs_password_is_in_no_task_of_a_stream(lake: Lake) -> None:
    options = {"path": "hidden.orders", "_schema": str(lake.table("hidden.orders").history()[0].schema_id)}
    source = data_source(lake.settings)(options=options)
    reader = cloudpickle.loads(cloudpickle.dumps(source)).streamReader(source.schema())
    start = reader.initialOffset()
    groups = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    to_tasks = cloudpickle.dumps((reader, groups))
    reader.stop()

    assert PASSWORD.encode() not in to_tasks
    at_work, again = cloudpickle.loads(to_tasks)
    assert sum(batch.num_rows for group in again for batch in at_work.read(group)) == 2


def test_what_is_carried_has_no_secret_in_its_text(lake: Lake, tmp_path: Path) -> None:
    kind = data_source(lake.settings)
    source = kind(options={"path": "hidden.orders"})
    reader = source.reader(StructType([StructField("id", LongType())]))
    told = (
        f"{kind} {vars(kind)} {source!r} {vars(source)} {vars(reader)} {[vars(each) for each in reader.partitions()]}"
    )

    assert not any(secret in told for secret in SECRETS)
