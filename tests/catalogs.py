"""Migrated catalogs for tests that change one each: to make a database, to migrate it and to drop it takes longer than
most of them, so it is emptied and lent again.

It has another name each time: whoever still knows the one before does not find it. A database of which more was changed
than rows is dropped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import psycopg
from psycopg import sql

from lakelib.catalog.connect import Catalog
from lakelib.catalog.migrate import migrate

_FORM = b"""
select md5(string_agg(part, ' ' order by part)) from (
    select concat_ws(' ', 'relation', oid, relname, relowner, relacl, reloptions) from pg_class
    where relnamespace in (select oid from pg_namespace where nspname !~ '^(pg_|information_schema)')
    union all
    select concat_ws(' ', 'column', attrelid, attnum, a.xmin) from pg_attribute a join pg_class c on c.oid = attrelid
    where relnamespace in (select oid from pg_namespace where nspname !~ '^(pg_|information_schema)')
    union all select concat_ws(' ', 'function', oid, xmin) from pg_proc where oid >= 16384
    union all select concat_ws(' ', 'constraint', oid, xmin) from pg_constraint where oid >= 16384
    union all select concat_ws(' ', 'trigger', oid, xmin) from pg_trigger
    union all select concat_ws(' ', 'event trigger', oid, xmin) from pg_event_trigger
    union all select concat_ws(' ', 'schema', oid, nspname, nspacl) from pg_namespace where nspname !~ '^pg_'
    union all select concat_ws(' ', 'extension', oid, xmin) from pg_extension
    union all select concat_ws(' ', 'default access', oid, xmin) from pg_default_acl
    union all select concat_ws(' ', 'statistics', count(*)) from pg_statistic where starelid >= 16384
    union all
    select concat_ws(' ', 'database', datdba, datacl, datconnlimit) from pg_database where datname = current_database()
    union all select concat_ws(' ', 'setting', s.setrole, s.setconfig) from pg_db_role_setting s
    union all select concat_ws(' ', 'migration', m.*) from lake.migration m
    union all select concat_ws(' ', 'upgrade', u.*) from lake.upgrade u
) as parts (part)"""
_EMPTY = b"""
do $$
declare
    each text;
    is_used boolean;
    used text[] := '{}';
begin
    for each in select relname from pg_class where relnamespace = 'lake'::regnamespace and relkind in ('r', 'p')
        and relname <> all (array['migration', 'upgrade'])
    loop
        execute format('select exists (select from lake.%I)', each) into is_used;
        if is_used then
            used := used || format('lake.%I', each);
        end if;
    end loop;
    set local session_replication_role = replica;  -- all of it goes: nobody has to look for what still names a row
    foreach each in array used loop  -- to truncate makes files anew
        if pg_relation_size(each::regclass) > 200000 then
            execute 'truncate ' || each || ' cascade';
        else
            execute 'delete from ' || each;
        end if;
    end loop;
    perform setval(seqrelid, seqstart, false) from pg_sequence join pg_class on oid = seqrelid
    where relnamespace = 'lake'::regnamespace;
end $$"""


@dataclass(frozen=True)
class _Database:
    url: str
    form: str
    identity: str


@dataclass(frozen=True, kw_only=True)
class Catalogs:
    """Who lends them, to one test after the other."""

    make: Callable[[], str]
    """The URL of an empty database."""
    drop: Callable[[str], None]
    _spare: list[_Database] = field(default_factory=list)

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The URL of a catalog without a row, for as long as the block lasts."""
        one = self._spare.pop() if self._spare else self._made()
        try:
            yield one.url
        finally:
            self._take_back(one)

    def _made(self) -> _Database:
        url = self.make()
        catalog = Catalog(url)
        migrate(catalog)
        catalog.close()
        with psycopg.connect(url, autocommit=True) as db:
            return _Database(url, _form(db), _value(db, b"select i::text from lake.identity i"))

    def _take_back(self, one: _Database) -> None:
        name, name_next = _name(one.url), f"test_{uuid4().hex}"
        with psycopg.connect(one.url.replace(f"/{name}?", "/postgres?"), autocommit=True) as server:
            server.execute("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s", (name,))
            try:
                with psycopg.connect(one.url, autocommit=True) as db:
                    is_as_it_was = _form(db) == one.form
                    if is_as_it_was:
                        db.execute(_EMPTY)
                        db.execute("insert into lake.identity select (%s::lake.identity).*", (one.identity,))
            except psycopg.Error:  # of the test's making
                is_as_it_was = False
            if is_as_it_was:
                names = (sql.Identifier(each) for each in (name, name_next))
                server.execute(sql.SQL("alter database {} rename to {}").format(*names))
        if is_as_it_was:
            self._spare.append(_Database(one.url.replace(name, name_next), one.form, one.identity))
        else:
            self.drop(one.url)


def _name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def _form(db: psycopg.Connection) -> str:
    """Of all but rows."""
    return _value(db, _FORM)


def _value(db: psycopg.Connection, query: bytes) -> str:
    found = db.execute(query).fetchone()
    assert found is not None
    return str(found[0])
