"""Fixtures of the tests on Spark as it is deployed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakelib
from infra.spark.standalone import Cluster, started_cluster
from lakelib import Lake, Table
from tests.integration.spark.cluster import DRIVER, SETTINGS
from tests.integration.spark.program import Program, started_program


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake on local files with the namespace `shop`."""
    folder = str(tmp_path_factory.mktemp("warehouse"))
    with lakelib.connect(warehouse=folder, catalog=module_catalog_url) as lake:
        lake.create_namespace("shop")
        yield lake


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers of one slot each."""
    with started_cluster(tmp_path_factory.mktemp("cluster"), workers=2, cores=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def driver(
    cluster: Cluster, lake: Lake, module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Program]:
    """A driver on the cluster, and on the lake."""
    settings = {"master": cluster.url, "warehouse": lake.warehouse, "catalog": module_catalog_url, "spark": SETTINGS}
    with started_program(DRIVER, settings, tmp_path_factory.mktemp("driver")) as driver:
        yield driver


@pytest.fixture
def table(lake: Lake) -> Iterator[Table]:
    """An empty table that is written in small runs."""
    yield lake.create_table(
        "shop.orders",
        "id BIGINT, day INT, version INT",
        primary_key=["id"],
        partition_by=["day"],
        buckets=2,
        options={"write_buffer_bytes": 65_536, "min_bucket_file_bytes": 0},
    )
    lake.drop_table("shop.orders")


@pytest.fixture
def markers(tmp_path: Path) -> Path:
    """Where tasks say that they run: a file `<task>-<attempt>` with the number of the process."""
    folder = tmp_path / "markers"
    folder.mkdir()
    return folder
