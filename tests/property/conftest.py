"""The lake of the lake machine."""

from collections.abc import Iterator

import pytest

import lakelib
from lakelib import Lake


@pytest.fixture(scope="module")
def machine_lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakelib.connect(warehouse=str(tmp_path_factory.mktemp("machine")), catalog=module_catalog_url) as lake:
        lake.create_namespace("m")
        yield lake
