"""The lake of the lake machine, and the chance by which statements of SQL are made."""

import os
import random
from collections.abc import Iterator

import pytest

import lakelib
from lakelib import Lake
from lakelib.catalog import tables
from lakelib.model.schema import TableSchema
from lakelib.model.table import TableInfo
from lakelib.ops.runtime import Runtime

_SEED = int(os.environ.get("LAKE_SQL_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)


@pytest.fixture(scope="module")
def chance() -> random.Random:
    print(f"LAKE_SQL_SEED={_SEED}")
    return random.Random(_SEED)


@pytest.fixture(scope="module")
def machine_lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """In every other table files call a column what they have called it first, as where there is a Delta log."""

    def named_earlier(runtime: Runtime, table: TableInfo) -> tuple[TableSchema, ...] | None:
        return tables.list_schemas(runtime.catalog, table.id) if table.id % 2 else None

    warehouse = str(tmp_path_factory.mktemp("machine"))
    with pytest.MonkeyPatch.context() as patched, lakelib.connect(warehouse, module_catalog_url) as lake:
        for module in ("write", "evolve"):
            patched.setattr(f"lakelib.ops.{module}.named_earlier", named_earlier)
        lake.create_namespace("m")
        yield lake
