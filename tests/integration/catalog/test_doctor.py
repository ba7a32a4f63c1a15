"""What the doctor sees in a real PostgreSQL: rights, indexes, and what only a broken constraint lets happen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake, Table


@pytest.fixture
def own_lake(catalog_url: str, tmp_path: Path) -> Iterator[Lake]:
    with lakelib.connect(warehouse=tmp_path, catalog=catalog_url) as lake:
        lake.create_namespace("shop")
        yield lake


@pytest.fixture
def orders(own_lake: Lake) -> Table:
    table = own_lake.create_table("shop.orders", "id BIGINT, dt STRING", primary_key=["id"])
    for version in (1, 2, 3):
        table.upsert(pa.table({"id": [version], "dt": ["mon"]}), idempotency_key=("loader", version))
    return table


@pytest.fixture
def admin(catalog_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(catalog_url, autocommit=True) as connection:
        yield connection


def test_what_a_user_may_not_do_is_told(
    own_lake: Lake, orders: Table, admin: psycopg.Connection[Any], catalog_url: str
) -> None:
    name = f"reader_{uuid4().hex}"
    admin.execute(f"create role {name} login".encode())
    own_lake.grant("writer", name)
    try:
        with lakelib.connect(
            warehouse=own_lake.warehouse, catalog=catalog_url.replace("postgres:@", f"{name}:@")
        ) as lake:
            (finding,) = lake.doctor().findings
    finally:
        admin.execute(f"drop role {name}".encode())
    assert (finding.kind, finding.place) == ("limited_rights", f"user {name}")
    assert "judge" in finding.detail
    assert "compact" in finding.detail
    assert "write rows" not in finding.detail


def test_work_that_was_published_twice_is_told(own_lake: Lake, orders: Table, admin: psycopg.Connection[Any]) -> None:
    admin.execute("drop index lake.commit_published_once")
    admin.execute("update lake.commit set version = 2 where version = 3")
    details = {finding.detail for finding in own_lake.doctor().findings if finding.kind == "wrong_progress"}
    assert details == {"version 2 was published 2 times"}


def test_an_index_that_is_not_used_is_told(own_lake: Lake, orders: Table, admin: psycopg.Connection[Any]) -> None:
    admin.execute("update pg_index set indisvalid = false where indexrelid = 'lake.commit_published_once'::regclass")
    assert dict(own_lake.doctor().counts) == {"invalid_index": 1}
    admin.execute("reindex index lake.commit_published_once")
    assert own_lake.doctor().findings == ()


def test_a_snapshot_that_is_gone_is_told(own_lake: Lake, orders: Table, admin: psycopg.Connection[Any]) -> None:
    admin.execute("delete from lake.snapshot where id = 2")
    assert dict(own_lake.doctor().counts) == {"missing_snapshot": 1, "wrong_file_snapshot": 1, "wrong_commit_state": 1}


def test_a_dropped_table_is_not_looked_at(own_lake: Lake, orders: Table, admin: psycopg.Connection[Any]) -> None:
    admin.execute("delete from lake.snapshot where id = 2")
    own_lake.drop_table("shop.orders")
    report = own_lake.doctor()
    assert (report.findings, report.tables) == ((), ())
