"""A database is brought to the present schema: in one step, or in two that let clients of the version before go on; by
one process or by many."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from lakelib.catalog import migrate as migrating
from lakelib.catalog.connect import Catalog
from lakelib.catalog.migrate import load_migrations, make_ready, migrate
from lakelib.catalog.queries import reading_functions
from lakelib.errors import CorruptionError, InvalidInputError, RetryableError
from lakelib.model.upgrade import Phase, Step
from tests.integration.faults.jobs import migrate_once, migrate_shared
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
    select oid::regprocedure::text, pg_get_functiondef(oid) from pg_proc
    where pronamespace = 'lake'::regnamespace order by 1"""
TRIGGERS = """
    select tgname, pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'lake'::regnamespace and not tgisinternal order by 1"""
LEDGER = "select version, name, checksum from lake.migration order by version"


ADDED = LEDGER.replace("lake.migration", "lake.upgrade where version > 0")
FUNCTIONS_STEP = Step(version=None, name="functions", phase=Phase.PRE)
KNOWN_FUNCTIONS = Path(__file__).parents[2] / "golden" / "functions.json"
OLD = 3
"""The last migration that the released version knows."""


@pytest.fixture
def old_catalog(catalog_url: str) -> Iterator[Catalog]:
    """As the released version has made it."""
    make_old(catalog_url)
    opened = Catalog(catalog_url, patience_seconds=2)
    yield opened
    opened.close()


def make_old(url: str) -> None:
    with psycopg.connect(url) as connection:
        for migration in load_migrations():
            if migration.version <= OLD:
                connection.execute(migration.text.encode())
                connection.execute(
                    "insert into lake.migration (version, name, checksum) values (%s, %s, %s)",
                    (migration.version, migration.name, migration.checksum),
                )


def described(url: str) -> list[list[tuple[object, ...]]]:
    queries = (TABLES, COLUMNS, CONSTRAINTS, INDEXES, FUNCTIONS, TRIGGERS)
    with psycopg.connect(url) as connection:
        return [connection.execute(query.encode()).fetchall() for query in queries]


def ledger(url: str, query: str = LEDGER) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


def named(first: int, last: float = float("inf")) -> list[tuple[object, ...]]:
    """How ledgers name these migrations."""
    return [(each.version, each.name, each.checksum) for each in load_migrations() if first <= each.version <= last]


def steps(phase: Phase) -> tuple[Step, ...]:
    found = tuple(each.step(phase) for each in load_migrations() if each.version > OLD)
    return (*found, FUNCTIONS_STEP) if phase is Phase.PRE else found


def test_both_phases_in_order_lead_to_the_present_schema(catalog_url: str) -> None:
    catalog = Catalog(catalog_url, patience_seconds=2)
    migrate(catalog)
    fresh = described(catalog_url)
    with psycopg.connect(catalog_url) as connection:
        connection.execute("drop schema lake cascade")
    make_old(catalog_url)

    migrate(catalog)
    migrate(catalog, post=True)

    catalog.close()
    assert described(catalog_url) == fresh
    assert all(fresh)


def test_what_was_released_stays_as_it_was() -> None:
    assert [(each.version, each.checksum[:16]) for each in load_migrations() if each.version <= OLD] == [
        (1, "84bc45faf2c8f923"),
        (2, "2e389c8c1fd84be9"),
        (3, "500f53abc160f4c0"),
    ]


def test_a_shared_catalog_that_is_too_old_is_left_alone_and_the_way_out_is_said(
    old_catalog: Catalog, catalog_url: str
) -> None:
    before = described(catalog_url)

    with pytest.raises(InvalidInputError, match="protocol") as caught:
        make_ready(old_catalog, is_own=False)

    assert (caught.value.kind, "lake migrate" in caught.value.remedy) == ("catalog_too_old", True)
    assert described(catalog_url) == before


def test_the_first_phase_leaves_the_ledger_that_older_clients_read(old_catalog: Catalog, catalog_url: str) -> None:
    done = migrate(old_catalog)

    assert (done.done, done.due) == (steps(Phase.PRE), steps(Phase.POST))
    assert ledger(catalog_url) == named(1, OLD)
    assert ledger(catalog_url, ADDED) == named(OLD + 1)
    make_ready(old_catalog, is_own=False)


def test_the_second_phase_shuts_older_clients_out_and_makes_the_first_if_that_is_due(
    old_catalog: Catalog, catalog_url: str
) -> None:
    done = migrate(old_catalog, post=True)

    assert (done.done, done.due) == (steps(Phase.PRE) + steps(Phase.POST), ())
    assert ledger(catalog_url) == named(1)
    make_ready(old_catalog, is_own=False)


def test_a_dry_run_tells_what_would_be_done_and_does_nothing(old_catalog: Catalog, catalog_url: str) -> None:
    before = described(catalog_url)

    told = migrate(old_catalog, dry_run=True)
    assert (told.done, told.due, told.dry_run) == (steps(Phase.PRE), steps(Phase.POST), True)
    told = migrate(old_catalog, post=True, dry_run=True)
    assert (told.done, told.due) == (steps(Phase.PRE) + steps(Phase.POST), ())

    assert described(catalog_url) == before
    assert ledger(catalog_url) == named(1, OLD)


def test_a_catalog_of_its_own_gets_the_additions_and_shuts_nobody_out(old_catalog: Catalog, catalog_url: str) -> None:
    make_ready(old_catalog, is_own=True)

    assert ledger(catalog_url) == named(1, OLD)
    assert ledger(catalog_url, ADDED) == named(OLD + 1)


def test_functions_are_brought_up_to_date_as_a_whole(catalog: Catalog, catalog_url: str) -> None:
    migrate(catalog)
    fresh = described(catalog_url)
    with psycopg.connect(catalog_url) as connection:
        connection.execute("update lake.upgrade set checksum = 'other' where version = 0")
        connection.execute(
            "create or replace function lake.release_turn_v1(own_turn uuid) returns void language sql as 'select 1'"
        )

    with pytest.raises(InvalidInputError, match="its functions") as caught:
        make_ready(catalog, is_own=False)
    assert caught.value.kind == "catalog_too_old"
    assert migrate(catalog, dry_run=True).done == (FUNCTIONS_STEP,)
    make_ready(catalog, is_own=True)

    assert described(catalog_url) == fresh
    assert migrate(catalog).done == ()


def test_functions_of_the_version_after_stay(catalog: Catalog, catalog_url: str) -> None:
    with psycopg.connect(catalog_url) as connection:
        connection.execute("update lake.upgrade set checksum = 'newer' where version = 0")
        connection.execute("insert into lake.upgrade (version, name, checksum) values (999, 'x', 'y')")

    make_ready(catalog, is_own=False)

    assert migrate(catalog).done == ()


def test_a_catalog_whose_functions_came_with_migrations_is_brought_up_to_date(
    catalog: Catalog, catalog_url: str
) -> None:
    """As one that was made when each migration's checksum covered the functions that it brought."""
    with psycopg.connect(catalog_url) as connection:
        connection.execute("delete from lake.upgrade")
        for version, checksum in migrating._WITH_FUNCTIONS.items():
            connection.execute("update lake.migration set checksum = %s where version = %s", (checksum, version))

    make_ready(catalog, is_own=True)

    assert migrate(catalog, dry_run=True).due == ()


def test_functions_change_with_a_migration() -> None:
    """Clients of the version before know by the number of a migration that the functions are not theirs any more. One
    that brings nothing else is a comment."""
    newest = load_migrations()[-1].version
    noted = json.loads(KNOWN_FUNCTIONS.read_text())

    assert {"migration": newest, "checksum": migrating.functions_checksum()} == noted, (
        f"{KNOWN_FUNCTIONS.name} notes with which migration functions were changed last: add one, and note it there"
    )


def test_additions_of_the_version_after_are_nothing_to_this_one(catalog: Catalog, catalog_url: str) -> None:
    catalog.run(lambda db: db.execute("insert into lake.upgrade (version, name, checksum) values (999, 'x', 'y')"))

    make_ready(catalog, is_own=False)

    assert migrate(catalog, post=True).done == ()
    assert ledger(catalog_url) == named(1)


def test_a_migration_waits_for_tables_in_use_only_so_long(
    old_catalog: Catalog, catalog_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(migrating, "_LOCK_TIMEOUT", "50ms")
    before = described(catalog_url)
    with psycopg.connect(catalog_url) as busy:
        busy.execute("lock table lake.commit in row share mode")
        with pytest.raises(RetryableError) as caught:
            migrate(old_catalog)

    assert caught.value.kind == "catalog_busy"
    assert described(catalog_url) == before
    assert migrate(old_catalog).done == steps(Phase.PRE)


def test_a_migration_of_either_phase_with_another_text_is_corruption(old_catalog: Catalog) -> None:
    migrate(old_catalog)
    old_catalog.run(lambda db: db.execute("update lake.upgrade set checksum = 'other' where version = 6"))

    with pytest.raises(CorruptionError, match="Migration 6 ") as caught:
        make_ready(old_catalog, is_own=False)

    assert caught.value.kind == "migration_changed"


def test_the_ledger_of_a_new_catalog_names_every_migration_with_its_checksum(catalog: Catalog) -> None:
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

    assert ledger(catalog_url) == named(1)


def test_processes_that_migrate_an_old_catalog_at_once_all_succeed(old_catalog: Catalog, catalog_url: str) -> None:
    assert results(run_together(migrate_shared, [(catalog_url,)] * 4)) == [None] * 4

    assert ledger(catalog_url) == named(1)


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


def test_functions_that_only_read_are_those_that_the_database_takes_for_such(
    catalog: Catalog, catalog_url: str
) -> None:
    with psycopg.connect(catalog_url) as connection:
        told = connection.execute("select proname, provolatile from pg_proc where pronamespace = 'lake'::regnamespace")
        kinds = dict(told.fetchall())
    assert {name for name, kind in kinds.items() if kind != "v"} == reading_functions()
    assert kinds["publish_v1"] == "v"
