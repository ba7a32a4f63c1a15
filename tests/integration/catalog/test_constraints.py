"""The database itself refuses what would make the catalog contradict itself, whichever program asks for it."""

from typing import Any

import psycopg
import pytest

import lakelib
from tests.integration.faults.jobs import SCHEMA, rows


@pytest.fixture
def _content(lake: lakelib.Lake) -> None:
    """A published commit, a staged one, a lease's and a tag's snapshot."""
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows({1: ("mon", 1)}), idempotency_key=("loader", 1))
    table.upsert(rows({2: ("mon", 2)}), idempotency_key=("loader", 2))
    table.stage_upsert(rows({3: ("tue", 3)}), idempotency_key=("loader", 3))


REFUSED = {
    "a second table of one name": (
        'insert into lake."table" (namespace, name, location, schema_id, last_schema_id, last_column_id, primary_key,'
        " partition_by, sequence_by, bucket_mode, merge) values ('shop', 'a', 'x', 1, 1, 1, '{1}', '{}', '{}',"
        " 'dynamic', 'deduplicate')",
        psycopg.errors.UniqueViolation,
    ),
    "a table in no namespace": (
        "update lake.\"table\" set namespace = 'nowhere'",
        psycopg.errors.ForeignKeyViolation,
    ),
    "a table of an unknown schema": ('update lake."table" set schema_id = 77', psycopg.errors.ForeignKeyViolation),
    "fixed buckets without a depth": (
        "update lake.\"table\" set bucket_mode = 'fixed', bucket_depth = null",
        psycopg.errors.CheckViolation,
    ),
    "buckets without a key": ("update lake.\"table\" set primary_key = '{}'", psycopg.errors.CheckViolation),
    "a partition twice": (
        "insert into lake.partition (table_id, key, path) select table_id, key, 'other' from lake.partition limit 1",
        psycopg.errors.UniqueViolation,
    ),
    "a version published twice": (
        "update lake.commit set version = 1 where version = 2",
        psycopg.errors.UniqueViolation,
    ),
    "a published commit without a snapshot": (
        "update lake.commit set state = 'published', decided_at = clock_timestamp() where state = 'staged'",
        psycopg.errors.CheckViolation,
    ),
    "a decided commit that is staged": (
        "update lake.commit set state = 'staged', snapshot_id = null where version = 1",
        psycopg.errors.CheckViolation,
    ),
    "an unknown state": ("update lake.commit set state = 'maybe'", psycopg.errors.CheckViolation),
    "an application without a version": (
        "update lake.commit set version = null where state = 'staged'",
        psycopg.errors.CheckViolation,
    ),
    "two snapshots of one commit": (
        "update lake.snapshot set commit_id = (select commit_id from lake.snapshot where id = 1) where id = 2",
        psycopg.errors.UniqueViolation,
    ),
    "a snapshot 0": ("update lake.snapshot set id = 0 where id = 1", psycopg.errors.Error),
    "a file twice in a commit": (
        "update lake.data_file set path = (select min(path) from lake.data_file),"
        " commit_id = (select commit_id from lake.data_file order by path limit 1)",
        psycopg.errors.UniqueViolation,
    ),
    "a file removed before it was added": (
        "update lake.data_file set removed_snapshot = 1 where added_snapshot = 2",
        psycopg.errors.CheckViolation,
    ),
    "a prefix longer than its depth": (
        "update lake.data_file set depth = 1, prefix = 2",
        psycopg.errors.CheckViolation,
    ),
    "a file without rows": ("update lake.data_file set row_count = 0", psycopg.errors.CheckViolation),
    "a tag on no snapshot": (
        "insert into lake.tag (table_id, name, snapshot_id) select id, 'eod', 77 from lake.\"table\"",
        psycopg.errors.ForeignKeyViolation,
    ),
    "progress to no snapshot": ("update lake.writer_progress set snapshot_id = 77", psycopg.errors.ForeignKeyViolation),
    "a verdict of no known outcome": (
        "insert into lake.verdict (commit_id, gate, outcome, base_snapshot_id, suite_hash, engine, seconds,"
        " judges_partitions, judges_table) select id, 'g', 'fine', 1, 'h', 'arrow', 0, false, false from lake.commit",
        psycopg.errors.CheckViolation,
    ),
}


@pytest.mark.usefixtures("_content")
@pytest.mark.parametrize("case", REFUSED)
def test_the_database_refuses(case: str, connection: psycopg.Connection[Any]) -> None:
    statement, error = REFUSED[case]

    with pytest.raises(error):
        connection.execute(statement.encode())


@pytest.mark.usefixtures("_content")
def test_the_name_of_a_dropped_table_is_free(lake: lakelib.Lake) -> None:
    for _ in range(2):
        lake.drop_table("shop.a")
        assert lake.tables("shop") == []
        lake.create_table("shop.a", SCHEMA, primary_key=["id"])
    assert lake.table("shop.a").head is None


@pytest.mark.usefixtures("_content")
def test_what_is_staged_for_a_table_that_was_dropped_is_not_published(lake: lakelib.Lake) -> None:
    staged = lake.table("shop.a").stage_upsert(rows({5: ("mon", 5)}))
    lake.drop_table("shop.a")

    with pytest.raises(lakelib.NotFoundError) as caught:
        staged.publish()

    assert caught.value.kind == "table_not_found"
