"""Fixtures of the tests on Spark as it is deployed."""

from collections.abc import Iterator

import pytest

import lakelib
from lakelib import Lake


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake on local files with the namespace `shop`."""
    folder = str(tmp_path_factory.mktemp("warehouse"))
    with lakelib.connect(warehouse=folder, catalog=module_catalog_url) as lake:
        lake.create_namespace("shop")
        yield lake
