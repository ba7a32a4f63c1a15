"""Granting roles: who may, what an administrator runs where lakelib's user may not, and what a migration keeps."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

import lakelib
from lakelib.catalog import migrate
from lakelib.catalog.migrate import Migration, load_migrations
from lakelib.catalog.roles import group_name
from lakelib.model.roles import Role
from tests.integration.catalog.town import SCHEMA, Town, as_user, forget, make_users, rows

TABLE_OWNERS = "select distinct tableowner from pg_tables where schemaname = 'lake'"

MAY_READ_AND_CALL = """
    select has_table_privilege(%s, 'lake.more', 'select'), has_function_privilege(%s, 'lake.more_v1()', 'execute')"""


@pytest.fixture
def own_database(make_database: Callable[[], str], request: pytest.FixtureRequest) -> Iterator[tuple[str, str, str]]:
    """A database that a user without powers owns: the administrator's URL, the owner and another user."""
    url, mark = make_database(), uuid4().hex[:12]
    users = (f"solo_{mark}", f"ann_{mark}")
    make_users(url, users[:1], getattr(request, "param", "login"))
    make_users(url, users[1:])
    with psycopg.connect(url, autocommit=True) as admin:
        names = {"database": sql.Identifier(admin.info.dbname), "owner": sql.Identifier(users[0])}
        admin.execute(sql.SQL("alter database {database} owner to {owner}").format(**names))
    try:
        yield (url, *users)
    finally:
        with psycopg.connect(url, autocommit=True) as admin:
            database = sql.Identifier(admin.info.dbname)
            admin.execute(sql.SQL("alter database {} owner to postgres").format(database))
        forget(url, users)


def test_without_grants_one_user_owns_everything(own_database: tuple[str, str, str], tmp_path: Path) -> None:
    url, solo, ann = own_database
    with lakelib.connect(warehouse=tmp_path, catalog=as_user(url, solo)) as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.a", SCHEMA, primary_key=["id"])
        table.upsert(rows(1))
        table.tag("kept")
        table.compact(full=True)
        table.expire()
        lake.vacuum()
        assert lake.grants() == []

    with pytest.raises(lakelib.InvalidInputError, match="lake grant reader ann") as caught:
        lakelib.connect(warehouse=tmp_path, catalog=as_user(url, ann))
    assert caught.value.kind == "catalog_refused"


def test_where_the_owner_may_make_no_roles_an_administrator_is_told_what_to_run(
    own_database: tuple[str, str, str], tmp_path: Path
) -> None:
    url, solo, ann = own_database
    with lakelib.connect(warehouse=tmp_path, catalog=as_user(url, solo)) as lake:
        lake.create_namespace("shop")
        with pytest.raises(lakelib.InvalidInputError, match=f"--print-sql writer {ann}") as caught:
            lake.grant("writer", ann)
        assert caught.value.kind == "catalog_refused"

        with psycopg.connect(url) as admin:
            for _ in range(2):
                admin.execute(lake.grant_sql("writer", ann).encode())

        lake.create_table("shop.a", SCHEMA, primary_key=["id"])
    with lakelib.connect(warehouse=tmp_path, catalog=as_user(url, ann)) as lake:
        lake.table("shop.a").upsert(rows(1))
        with pytest.raises(lakelib.InvalidInputError, match="role owner"):
            lake.grant("owner", ann)


@pytest.mark.parametrize("own_database", ["login createrole"], indirect=True)
def test_an_owner_who_may_make_roles_grants_them_and_stays_owner(
    own_database: tuple[str, str, str], tmp_path: Path
) -> None:
    url, solo, ann = own_database
    with lakelib.connect(warehouse=tmp_path, catalog=as_user(url, solo)) as lake:
        lake.create_namespace("shop")
        lake.grant("publisher", ann)
        lake.grant("maintainer", ann)
        lake.create_table("shop.a", SCHEMA, primary_key=["id"]).upsert(rows(1))

        assert [(each.role, each.user) for each in lake.grants()] == [
            (Role.PUBLISHER, ann),
            (Role.MAINTAINER, ann),
            (Role.OWNER, solo),
        ]
        with lakelib.connect(warehouse=tmp_path, catalog=as_user(url, ann)) as granted:
            granted.table("shop.a").tag("kept")
        lake.revoke("publisher", ann)
        assert [each.role for each in lake.grants()] == [Role.MAINTAINER, Role.OWNER]


def test_a_copied_data_folder_is_told_also_where_roles_were_granted(town: Town) -> None:
    with psycopg.connect(town.url) as admin:
        admin.execute("update lake.identity set data_made_at = data_made_at - interval '1 day'")
        found = admin.execute("select lake.check_identity_v1(i.epoch) from lake.identity i").fetchone()
        admin.rollback()

    assert found == ("copied",)


def test_the_first_grant_waits_for_whoever_reads_and_lets_others_by(
    own_database: tuple[str, str, str], tmp_path: Path
) -> None:
    url, _, ann = own_database
    with lakelib.connect(warehouse=tmp_path, catalog=url) as lake, ThreadPoolExecutor(1) as beside:
        with psycopg.connect(url) as reading:
            reading.execute("select from lake.namespace")
            granting = beside.submit(lake.grant, "reader", ann)
            lake.create_namespace("shop")
            assert not granting.done()
        granting.result(30)

    lakelib.connect(warehouse=tmp_path, catalog=as_user(url, ann)).close()


def test_owners_migrate_and_others_are_told_to_have_it_done(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = Migration(
        version=9999,
        name="more",
        text="create table lake.more (id int); create function lake.more_v1() returns int language sql as 'select 1';",
    )
    known = (*load_migrations(), newer)
    monkeypatch.setattr(migrate, "load_migrations", lambda: known)

    for role in ("reader", "writer", "publisher", "maintainer"):
        with pytest.raises(lakelib.InvalidInputError, match="role owner") as caught:
            lakelib.migrate(warehouse=town.warehouse, catalog=as_user(town.url, town.users[role]))
        assert caught.value.kind == "catalog_refused"
    lakelib.migrate(warehouse=town.warehouse, catalog=as_user(town.url, town.users["owner"]))

    lakelib.connect(warehouse=town.warehouse, catalog=as_user(town.url, town.users["reader"])).close()
    with psycopg.connect(town.url) as admin:
        assert admin.execute(TABLE_OWNERS.encode()).fetchall() == [(group_name(Role.OWNER, admin.info.dbname),)]
        assert admin.execute(MAY_READ_AND_CALL.encode(), [town.users["reader"]] * 2).fetchone() == (True, False)
        admin.execute("drop table lake.more; drop function lake.more_v1; delete from lake.upgrade where version = 9999")
