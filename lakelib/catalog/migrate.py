"""Brings a database to the present schema, in two phases, one migrator at a time.

What only adds (`pre`) is noted in `lake.upgrade`: clients of the version before go on working beside those of this
one. What shuts them out (`post`) is noted in `lake.migration`, which every client reads when it connects. A client
needs all additions that it knows, to the letter, and nothing in `lake.migration` that it does not know; additions of a
later version are nothing to it.

Functions are no part of a migration: they are brought up to date as a whole, after the additions, wherever the catalog
has others than this version's and no addition of a later one.
"""

import hashlib
import random
import re
import time
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources

import psycopg
from psycopg import sql

from lakelib.catalog.address import place_of
from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.failures import CatalogBusyError
from lakelib.catalog.roles import become_owner, renew_privileges
from lakelib.dataclass import dataclass
from lakelib.errors import CorruptionError, InvalidInputError
from lakelib.model.upgrade import Phase, Step, Upgrade

_LOCK_ID = 0x6C616B65
_LOCK_TIMEOUT = "1s"
"""How long others may have to queue behind a migration that waits for a table itself."""
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.5
_LEDGERS = ("migration", "upgrade")
_LAST_IN_ONE = 3
"""Migrations up to this one have no phases: they shut older clients out at once."""
_FUNCTIONS = 0
"""The functions' row in `lake.upgrade`, which is no migration's."""
_WITH_FUNCTIONS = {
    6: "ffb80fa78068eeca71938991cc0184c3b7a501fb707a9bb4da41e8820ecfd5f2",
    7: "51bc38f4512f66cb3ae3f348bc3fda6d57f37929c4cd19a29c3f38c0bf873dbd",
    8: "dd2f335bd4f7ac8939b4b04f8196cda032c9b84d7a87a4d45892b401dca0c85d",
    10: "57492740a9ed9fac14f160a245f059b6f5fb64635368b088eb468c57df62437a",
    12: "ddeaeeb2520e8a4f70d22e3884bcf04dcad49b6b4619d41b36bc997e5a511d88",
}
"""Checksums of migrations that functions were a part of once: what else they bring is the same."""
_FILE_NAME = re.compile(r"^(\d{4})_(\w+)\.sql$")
_INCLUDE = re.compile(r"^-- include: (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    text: str
    """What it adds."""
    post_text: str = ""
    """What it does once older clients are shut out."""

    @property
    def checksum(self) -> str:
        return hashlib.sha256((self.text + self.post_text).encode()).hexdigest()

    def step(self, phase: Phase) -> Step:
        return Step(version=self.version, name=self.name, phase=phase)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The checksums of migrations by version."""

    added: Mapping[int, str]
    closed: Mapping[int, str]
    functions: str | None = None
    """The checksum of those that are there, None for none or for those of migrations."""

    @property
    def is_empty(self) -> bool:
        return not self.closed

    def has(self, migration: Migration) -> bool:
        return migration.version in self.added or migration.version in self.closed

    def due(self, known: Collection[Migration], phases: Collection[Phase]) -> tuple[Step, ...]:
        """The steps that are left, in the order in which they are taken."""
        pre = [each.step(Phase.PRE) for each in known if not self.has(each)]
        if self.functions != functions_checksum() and not self._is_ahead_of(known):
            pre.append(Step(version=None, name="functions", phase=Phase.PRE))
        post = [
            each.step(Phase.POST) for each in known if each.version not in self.closed and each.version > _LAST_IN_ONE
        ]
        return tuple(step for step in (*pre, *post) if step.phase in phases)

    def _is_ahead_of(self, known: Collection[Migration]) -> bool:
        """A later version has migrated it, and brought its own functions."""
        return not (self.added.keys() | self.closed.keys()) <= {each.version for each in known}


def make_ready(catalog: Catalog, *, is_own: bool) -> None:
    """This version can work with the catalog afterwards. An empty database is set up. Additions that are missing are
    made where the catalog `is_own`, that is no other's to look after.

    Raises InvalidInputError if the catalog is too old or too new, CorruptionError if a migration was applied with
    another text; changes nothing then.
    """
    ledger = catalog.run(_read_checked)
    missing = ledger.due(load_migrations(), [Phase.PRE])
    if ledger.is_empty or (is_own and missing):
        migrate(catalog)
    elif missing:
        raise InvalidInputError(
            f"The catalog at {place_of(catalog.url)} lacks what this lakelib needs: {_named(missing)}.",
            kind="catalog_too_old",
            remedy="Run `lake migrate` once. Clients of the version before go on working.",
        )


def migrate(catalog: Catalog, *, post: bool = False, dry_run: bool = False) -> Upgrade:
    """The catalog has all additions afterwards, and with `post` older clients are shut out. An empty database gets the
    present schema in one step. A dry run only tells.

    Raises RetryableError if its tables were in use for too long; what `make_ready` raises for other ledgers.
    """
    phases = (Phase.PRE, Phase.POST) if post else (Phase.PRE,)
    if dry_run:
        return _told(catalog.run(_read_checked), phases)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return catalog.run(lambda connection: _migrate(connection, phases))
        except CatalogBusyError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(random.uniform(_PAUSE_SECONDS / 2, _PAUSE_SECONDS))


def migrate_within(connection: Connection) -> None:
    """All additions, in a transaction that is under way."""
    _migrate(connection, (Phase.PRE,))


def _migrate(connection: Connection, phases: Collection[Phase]) -> Upgrade:
    try:
        connection.execute("select set_config('lock_timeout', %s, true)", (_LOCK_TIMEOUT,))
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK_ID,))
        ledger = _read_checked(connection)
        become_owner(connection)
        if ledger.is_empty:
            _set_up(connection)
            return Upgrade(done=ledger.due(load_migrations(), list(Phase)), due=(), dry_run=False)
        known = {each.version: each for each in load_migrations()}
        steps = ledger.due(known.values(), phases)
        for step in steps:
            if step.version is None:
                _renew_functions(connection)
            else:
                _take(connection, known[step.version], step.phase)
        renew_privileges(connection)
        return Upgrade(done=steps, due=_read_ledger(connection).due(known.values(), list(Phase)), dry_run=False)
    except psycopg.errors.LockNotAvailable as error:
        raise CatalogBusyError(
            "The catalog cannot be migrated: its tables are in use, or another migration is under way.",
            remedy="Nothing was changed. Try again; if it lasts, find out in pg_locks who holds them.",
        ) from error


def _set_up(connection: Connection) -> None:
    connection.execute(sql.SQL(load_schema()))
    for migration in load_migrations():
        _record(connection, "migration", migration)
    _record_functions(connection)


def _renew_functions(connection: Connection) -> None:
    connection.execute(sql.SQL(_load_text("functions.sql")))
    _record_functions(connection)


def _take(connection: Connection, migration: Migration, phase: Phase) -> None:
    is_adding = phase is Phase.PRE
    has_phases = migration.version > _LAST_IN_ONE
    if has_phases and "upgrade" not in _present(connection):
        connection.execute(sql.SQL(_load_text("upgrade.sql")))
    text = migration.text if is_adding else migration.post_text
    if text:
        connection.execute(sql.SQL(text))
    _record(connection, "upgrade" if is_adding and has_phases else "migration", migration)


def _told(ledger: Ledger, phases: Collection[Phase]) -> Upgrade:
    wanted = list(Phase) if ledger.is_empty else phases
    done, steps = ledger.due(load_migrations(), wanted), ledger.due(load_migrations(), list(Phase))
    return Upgrade(done=done, due=tuple(step for step in steps if step not in done), dry_run=True)


def check_ledger(ledger: Ledger, known: Collection[Migration]) -> None:
    """Raises unless what was applied is known, to the letter. Additions of others need not be."""
    newest = max(each.version for each in known)
    unknown = sorted(ledger.closed.keys() - {each.version for each in known})
    if unknown:
        raise InvalidInputError(
            f"The catalog has schema version {unknown[-1]}, this lakelib knows up to {newest}.",
            kind="catalog_too_new",
            remedy="Use the newer lakelib that made it.",
        )
    for migration in known:
        for applied in (ledger.added, ledger.closed):
            checksums = (migration.checksum, _WITH_FUNCTIONS.get(migration.version))
            if applied.get(migration.version, migration.checksum) not in checksums:
                raise CorruptionError(
                    f"Migration {migration.version} ({migration.name}) was applied to the catalog with another text.",
                    kind="migration_changed",
                    remedy="Restore the migration file: an applied migration never changes.",
                )


@cache
def load_migrations() -> tuple[Migration, ...]:
    """All migrations in order. What one does at last is in a file beside it, `0001_name.post.sql`."""
    folder = resources.files("lakelib.catalog") / "sql" / "migrations"
    texts = {file.name: file.read_text() for file in folder.iterdir() if file.name.endswith(".sql")}
    found = [
        Migration(
            version=int(parts[1]),
            name=parts[2],
            text=text,
            post_text=texts.get(f"{parts[1]}_{parts[2]}.post.sql", ""),
        )
        for name, text in texts.items()
        if (parts := _FILE_NAME.match(name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.version))


def load_schema() -> str:
    """The present schema."""
    return _load_text("schema.sql")


@cache
def functions_checksum() -> str:
    return hashlib.sha256(_load_text("functions.sql").encode()).hexdigest()


def _load_text(name: str) -> str:
    """A file with those that it includes in their places."""
    text = (resources.files("lakelib.catalog") / "sql" / name).read_text()
    return _INCLUDE.sub(lambda line: _load_text(line[1]), text)


def _read_checked(connection: Connection) -> Ledger:
    ledger = _read_ledger(connection)
    check_ledger(ledger, load_migrations())
    return ledger


def _read_ledger(connection: Connection) -> Ledger:
    applied: dict[str, dict[int, str]] = {name: {} for name in _LEDGERS}
    present = _present(connection)
    rows = sql.SQL(" union all ").join(
        sql.SQL("select {} as ledger, version, checksum from lake.{}").format(sql.Literal(name), sql.Identifier(name))
        for name in present
    )
    for row in connection.execute(rows) if present else ():
        applied[row["ledger"]][row["version"]] = row["checksum"]
    functions = applied["upgrade"].pop(_FUNCTIONS, None)
    return Ledger(added=applied["upgrade"], closed=applied["migration"], functions=functions)


def _present(connection: Connection) -> list[str]:
    """The ledgers that are there."""
    # Names are looked up in a cache, which remembers that there was no such schema before another migrator made it.
    # Reading the system catalogs themselves sees what is there, and brings the cache up to date.
    found = connection.execute(
        "select tablename from pg_catalog.pg_tables where schemaname = 'lake' and tablename = any(%s)",
        (list(_LEDGERS),),
    )
    return [row["tablename"] for row in found]


def _record(connection: Connection, table: str, migration: Migration) -> None:
    statement = sql.SQL("insert into lake.{} (version, name, checksum) values (%s, %s, %s)")
    connection.execute(statement.format(sql.Identifier(table)), (migration.version, migration.name, migration.checksum))


def _record_functions(connection: Connection) -> None:
    connection.execute(
        "insert into lake.upgrade (version, name, checksum) values (%s, 'functions', %s) on conflict (version)"
        " do update set checksum = excluded.checksum, applied_at = excluded.applied_at",
        (_FUNCTIONS, functions_checksum()),
    )


def _named(steps: Collection[Step]) -> str:
    return ", ".join(
        "its functions" if step.version is None else f"migration {step.version} ({step.name})" for step in steps
    )
