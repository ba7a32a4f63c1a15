"""Makes the users of the databases and grants them what they need: Airflow its own database, its jobs the roles
publisher and maintainer in the lake. Run by the init container, with the administrator's URL, and by `make up`; safe to
repeat.

Neither is a superuser nor owns the lake: a job cannot publish past a gate that an owner has required, or release it.
"""

import os
from collections.abc import Sequence

import psycopg
from psycopg import conninfo, sql

import lakelib

ROLES_OF_JOBS = ("publisher", "maintainer")
_OWN_ALL = """
do $own$
declare
    found record;
begin
    for found in select c.oid::regclass as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = 'public' and c.relkind in ('r', 'p', 'v')
                   and c.relowner <> {user}::regrole loop
        execute format('alter table %s owner to %I', found.name, {user});
    end loop;
    for found in select t.oid::regtype as name from pg_type t join pg_namespace n on n.oid = t.typnamespace
                 where n.nspname = 'public' and t.typtype = 'e'
                   and t.typowner <> {user}::regrole loop
        execute format('alter type %s owner to %I', found.name, {user});
    end loop;
end $own$
"""


def make_roles(owner_url: str, airflow_url: str, jobs_url: str, *, warehouse: str | None = None) -> None:
    """The users of both URLs are there, with the passwords that the URLs have. The warehouse is the one that the
    environment names, if none is given."""
    for url in (airflow_url, jobs_url):
        make_user(owner_url, *login_of(url))
    give_database(owner_url, airflow_url)
    with lakelib.connect(warehouse=warehouse, catalog=owner_url) as lake:
        for role in ROLES_OF_JOBS:
            lake.grant(role, login_of(jobs_url)[0])


def login_of(url: str) -> tuple[str, str]:
    found = conninfo.conninfo_to_dict(url)
    return str(found["user"]), str(found.get("password", ""))


def make_user(owner_url: str, user: str, password: str) -> None:
    with psycopg.connect(owner_url) as admin:
        there = admin.execute("select from pg_roles where rolname = %s", [user]).fetchone() is not None
        text = "alter role {} login password {}" if there else "create role {} login password {}"
        admin.execute(sql.SQL(text).format(sql.Identifier(user), sql.Literal(password)))


def give_database(owner_url: str, url: str) -> None:
    """The URL's database, and all that a superuser has made in it before, is the URL's user's. What is already is not
    touched: to change an owner locks the table, and Airflow may be at work."""
    user, _ = login_of(url)
    database = str(conninfo.conninfo_to_dict(url)["dbname"])
    with psycopg.connect(conninfo.make_conninfo(owner_url, dbname=database)) as admin:
        names: Sequence[sql.Composable] = (sql.Identifier(database), sql.Identifier(user))
        admin.execute(sql.SQL("alter database {} owner to {}").format(*names))
        admin.execute(sql.SQL("alter schema public owner to {}").format(sql.Identifier(user)))
        admin.execute(sql.SQL(_OWN_ALL).format(user=sql.Literal(user)))


if __name__ == "__main__":
    make_roles(
        os.environ["LAKE_OWNER_CATALOG"],
        os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].replace("postgresql+psycopg://", "postgresql://"),
        os.environ["LAKE_CATALOG"],
    )
