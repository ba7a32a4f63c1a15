"""A catalog with a user for each role, for tests of what roles may do."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pyarrow as pa
from psycopg import sql

import lakelib
from lakelib import Lake
from lakelib.catalog.roles import group_name
from lakelib.model.roles import Role
from lakelib.specs.suite import Suite, parse_suite
from tests.conftest import drop_database

ROLES = [role.value for role in Role]
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.string()), ("value", pa.int64())])
_SUITE = """
name: {name}
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {{column: id}}
"""


def suite(name: str = "keys") -> Suite:
    return parse_suite(_SUITE.format(name=name), "test")


def rows(*ids: int, day: str = "mon") -> pa.Table:
    return pa.table({"id": ids, "day": [day] * len(ids), "value": ids}, schema=SCHEMA)


def as_user(url: str, user: str) -> str:
    return url.replace("postgres:@", f"{user}:@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """A catalog with a user for each role, and the lake as each of them has it."""

    url: str
    warehouse: Path
    root: Lake
    users: Mapping[str, str]
    lakes: Mapping[str, Lake]
    stranger: str
    """A user without any role."""

    def state(self) -> dict[str, str]:
        """All rows of the catalog but leases and listeners, and all files."""
        with psycopg.connect(self.url, autocommit=True) as db:
            names = [
                row[0] for row in db.execute("select tablename from pg_tables where schemaname = 'lake' order by 1")
            ]
            found = {
                name: db.execute(
                    sql.SQL("select coalesce(string_agg(t::text, '; ' order by t::text), '') from {} t").format(
                        sql.Identifier("lake", name)
                    )
                ).fetchone()[0]  # type: ignore[index]
                for name in names
                if name not in ("lease", "listener")
            }
            members = (
                "select array_agg(m::text order by m::text) from pg_auth_members m where roleid::regrole::text ~ %s"
            )
            group = group_name(Role.READER, str(db.info.dbname)).removeprefix("lake_reader_")
            found["members"] = str(db.execute(members, [group]).fetchone())
        files = sorted(str(path.relative_to(self.warehouse)) for path in self.warehouse.rglob("*") if path.is_file())
        return found | {"files": "\n".join(files)}


@contextmanager
def open_town(make_database: Callable[[], str], warehouse: Path) -> Iterator[Town]:
    """With the namespace `shop` and the registered gate `keys`."""
    url = make_database()
    mark = uuid4().hex[:12]
    users = {role: f"{role}_{mark}" for role in [*ROLES, "stranger", "extra"]}
    make_users(url, users.values())
    lakes: dict[str, Lake] = {}
    try:
        with lakelib.connect(warehouse=warehouse, catalog=url) as root:
            root.create_namespace("shop")
            for role in ROLES:
                root.grant(role, users[role])
                lakes[role] = lakelib.connect(warehouse=warehouse, catalog=as_user(url, users[role]))
            root.register_gate(suite())
            yield Town(url=url, warehouse=warehouse, root=root, users=users, lakes=lakes, stranger=users["stranger"])
    finally:
        for lake in lakes.values():
            lake.close()
        forget(url, users.values())


def make_users(url: str, users: Iterable[str], attributes: str = "login") -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        for user in users:
            admin.execute(sql.SQL(f"create role {{}} {attributes}").format(sql.Identifier(user)))


def forget(url: str, users: Iterable[str]) -> None:
    """Roles are the whole server's: they go with the database."""
    with psycopg.connect(url, autocommit=True) as admin:
        groups = [group_name(role, admin.info.dbname) for role in Role]
    drop_database(url)
    elsewhere = url.replace(f"/{url.partition('?')[0].rpartition('/')[2]}?", "/postgres?")
    with psycopg.connect(elsewhere, autocommit=True) as admin:
        for name in [*groups, *users]:
            admin.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(name)))
