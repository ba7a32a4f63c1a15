"""A database is brought to the present schema: in one step or migration by migration, by one process or by many."""

from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from lakelib.catalog.connect import Catalog
from lakelib.catalog.migrate import load_migrations, load_schema, migrate
from lakelib.errors import CorruptionError, InvalidInputError
from tests.integration.faults.jobs import migrate_once
from tests.integration.faults.processes import results, run_together

COLUMNS = """
    select table_name, column_name, data_type, is_nullable, column_default, is_identity, identity_generation
    from information_schema.columns where table_schema = 'lake' order by 1, 2"""
CONSTRAINTS = """
    select conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    from pg_constraint where connamespace = 'lake'::regnamespace order by 1, 2, 3"""
INDEXES = "select tablename, indexname, indexdef from pg_indexes where schemaname = 'lake' order by 1, 2"
TABLES = """
    select relname, relkind, reloptions from pg_class where relnamespace = 'lake'::regnamespace order by 1"""
FUNCTIONS = """
    select pg_get_functiondef(oid) from pg_proc where pronamespace = 'lake'::regnamespace order by 1"""
LEDGER = "select version, name, checksum from lake.migration order by version"


def described(url: str) -> list[list[tuple[object, ...]]]:
    with psycopg.connect(url) as connection:
        queries = (TABLES, COLUMNS, CONSTRAINTS, INDEXES, FUNCTIONS)
        return [connection.execute(query.encode()).fetchall() for query in queries]


def test_all_migrations_in_order_lead_to_the_present_schema(catalog_url: str) -> None:
    with psycopg.connect(catalog_url) as connection:
        connection.execute(load_schema().encode())
    fresh = described(catalog_url)
    with psycopg.connect(catalog_url) as connection:
        connection.execute("drop schema lake cascade")
        for migration in load_migrations():
            connection.execute(migration.text.encode())

    assert described(catalog_url) == fresh
    assert all(fresh)


def test_the_ledger_names_every_migration_with_its_checksum(catalog: Catalog) -> None:
    found = catalog.run(lambda db: db.execute(LEDGER).fetchall())

    assert [(row["version"], row["name"], row["checksum"]) for row in found] == [
        (migration.version, migration.name, migration.checksum) for migration in load_migrations()
    ]


def test_migrating_again_changes_nothing(catalog: Catalog, catalog_url: str) -> None:
    before = described(catalog_url)

    migrate(catalog)

    assert described(catalog_url) == before


def test_processes_that_migrate_an_empty_database_at_once_all_succeed(catalog_url: str, tmp_path: Path) -> None:
    assert results(run_together(migrate_once, [(str(tmp_path), catalog_url)] * 8)) == [[]] * 8

    with psycopg.connect(catalog_url) as connection:
        assert connection.execute(LEDGER.encode()).fetchall() == [
            (migration.version, migration.name, migration.checksum) for migration in load_migrations()
        ]


def test_a_migration_that_was_applied_with_another_text_is_corruption(catalog: Catalog) -> None:
    catalog.run(lambda db: db.execute("update lake.migration set checksum = 'other' where version = 1"))

    with pytest.raises(CorruptionError, match="Migration 1 ") as caught:
        migrate(catalog)

    assert caught.value.kind == "migration_changed"


def test_a_catalog_of_a_newer_lakelib_is_refused_and_left_alone(catalog: Catalog, catalog_url: str) -> None:
    catalog.run(lambda db: db.execute("insert into lake.migration (version, name, checksum) values (999, 'x', 'y')"))
    before = described(catalog_url)

    with pytest.raises(InvalidInputError, match="999") as caught:
        migrate(catalog)

    assert caught.value.kind == "catalog_too_new"
    assert described(catalog_url) == before


def test_a_migration_that_fails_leaves_the_database_as_it_was(catalog_url: str) -> None:
    with psycopg.connect(catalog_url) as connection:
        connection.execute("create schema lake")
        connection.execute(sql.SQL("create table lake.verdict (id int)"))
    catalog = Catalog(catalog_url, patience_seconds=1)

    with pytest.raises(Exception, match="lake"):
        migrate(catalog)

    catalog.close()
    with psycopg.connect(catalog_url) as connection:
        found = connection.execute("select relname from pg_class where relnamespace = 'lake'::regnamespace")
        assert found.fetchall() == [("verdict",)]
