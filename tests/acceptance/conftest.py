"""Fixtures of the acceptance suite: an engine, a lake on local files (or on S3, where a module asks for both)."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from typing import Any
from zlib import crc32

import pytest

import lakelib
from lakelib import Lake, Table
from lakelib.settings import StorageSettings
from tests.acceptance.support import ArrowEngine, Engine, NewTable, SparkEngine
from tests.conftest import BUCKET


@pytest.fixture(autouse=True)
def read_both_ways(some_small_files: None) -> None:
    """Tests have small files only: about half of them read these as if they were large."""


@pytest.fixture(params=["arrow", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """On Spark about half of the tests shuffle what they write, always the same ones."""
    if request.param == "arrow":
        return ArrowEngine()
    distribution = ("none", "hash")[crc32(request.node.nodeid.encode()) % 2]
    return SparkEngine(request.getfixturevalue("spark"), distribution)


@pytest.fixture(scope="module")
def storage_kind() -> str:
    """A module that runs on S3 too has a fixture of this name with the parameters "local" and "s3"."""
    return "local"


@pytest.fixture(scope="module")
def storage(storage_kind: str, request: pytest.FixtureRequest) -> StorageSettings:
    """How the tests themselves reach the stored files."""
    if storage_kind == "local":
        return StorageSettings()
    found: StorageSettings = request.getfixturevalue("s3_settings")
    return found


@pytest.fixture(scope="module")
def lake(
    storage_kind: str,
    storage: StorageSettings,
    module_catalog_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("lake")
    warehouse = str(folder) if storage_kind == "local" else f"s3://{BUCKET}/{folder.name}"
    given = {name: value for name, value in asdict(storage).items() if value is not None}
    with lakelib.connect(warehouse=warehouse, catalog=module_catalog_url, **given) as lake:
        lake.create_namespace(storage_kind)
        yield lake


_NUMBERS = count()


@pytest.fixture
def new_table(lake: Lake, storage_kind: str) -> NewTable:
    def make(schema: Any, **definition: Any) -> Table:
        return lake.create_table(f"{storage_kind}.t{next(_NUMBERS)}", schema, **definition)

    return make


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spark on S3 has tests of its own, in tests/integration/spark: here it would be a third of the suite's time."""
    both = {"engine": "spark", "storage_kind": "s3"}
    left_out = [
        item
        for item in items
        if (callspec := getattr(item, "callspec", None)) is not None and both.items() <= callspec.params.items()
    ]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
