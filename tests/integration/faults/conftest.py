"""Fixtures of the tests that break things: a lake on a database of its own, and what its catalog says of itself."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import lakelib
from tests.catalogs import Catalogs
from tests.integration.faults.jobs import SCHEMA
from tests.integration.faults.ledger import Ledger


@pytest.fixture
def ledger(catalogs: Catalogs, tmp_path: Path) -> Iterator[Ledger]:
    """A lake with the tables shop.a and shop.b (by key, partitioned by day) and shop.log (append only)."""
    with catalogs.lent() as url, lakelib.connect(warehouse=str(tmp_path / "warehouse"), catalog=url) as lake:
        lake.create_namespace("shop")
        for name in ("shop.a", "shop.b"):
            lake.create_table(name, SCHEMA, primary_key=["id"], partition_by=["day"], buckets=2)
        lake.create_table("shop.log", SCHEMA)
        with psycopg.connect(url, autocommit=True) as connection:
            yield Ledger(lake=lake, url=url, connection=connection)
