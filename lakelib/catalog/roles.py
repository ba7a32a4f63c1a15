"""Roles of a catalog: groups in the database, what they may do, and who is in them.

The groups are made when the first role is granted. Until then one user owns everything, and all others have nothing.
"""

import hashlib
import re
from collections.abc import Callable
from functools import cache
from importlib import resources

import psycopg
from psycopg import sql

from lakelib.catalog.address import login_of
from lakelib.catalog.connect import Catalog, Connection
from lakelib.catalog.failures import right_missing, user_of
from lakelib.catalog.queries import query
from lakelib.errors import CatalogRefusedError, InvalidInputError, NotFoundError
from lakelib.model.roles import Grant, Right, Role

_LOCK_ID = 0x6C616B66
_KEEPS_GRANTORS = 160000
"""The server's version from which on nobody revokes what another has granted."""
_LOCK_TIMEOUT = "2s"
"""Tables change their owner: whoever waits behind that should not wait for somebody who is idle."""
_LONGEST_NAME = 63
_DIGEST_LETTERS = 8
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_STEPS = ("make_groups", "take_over", "set_privileges")


def grant(catalog: Catalog, role: Role, user: str) -> None:
    """The user has the role afterwards. Raises InvalidInputError for a user that the server does not know, and where an
    administrator is needed."""

    def work(db: Connection) -> None:
        database = _lock(db)
        if not _is_set_up(db, database):
            db.execute("select set_config('lock_timeout', %s, true)", (_LOCK_TIMEOUT,))
            for step in _STEPS:
                db.execute(_step(step, database))
        db.execute(_membership(db, database, role, user))

    catalog.run(lambda db: _telling(catalog, role, user, lambda: work(db)))


def revoke(catalog: Catalog, role: Role, user: str) -> None:
    """The user does not have the role any more, unless by another one. Raises NotFoundError if it was not granted."""

    def work(db: Connection) -> None:
        group = group_name(role, _lock(db))
        given = [row for row in _members(db, [group]) if row["user"] == user]
        if not given:
            raise NotFoundError(
                f"User {user!r} does not have the role {role.value}.",
                kind="grant_not_found",
                remedy="`lake roles` lists who has which.",
            )
        for row in given:
            by = sql.SQL(" granted by {}").format(sql.Identifier(row["grantor"])) if row["grantor"] else sql.SQL("")
            names = (sql.Identifier(group), sql.Identifier(user))
            db.execute(sql.SQL("revoke {} from {}{}").format(*names, by))

    catalog.run(lambda db: _telling(catalog, role, user, lambda: work(db)))


def list_grants(catalog: Catalog) -> list[Grant]:
    """Who was given which role, owners last. Who owns the server may do everything, and is not named."""

    def work(db: Connection) -> list[Grant]:
        roles = {group_name(role, _database(db)): role for role in Role}
        found = {Grant(role=roles[row["group"]], user=row["user"]) for row in _members(db, list(roles))}
        return sorted(found, key=lambda each: (list(Role).index(each.role), each.user))

    return catalog.run(work)


def grant_sql(catalog: Catalog, role: Role, user: str) -> str:
    """What an administrator runs in the database to grant the role: it may be run again."""

    def work(db: Connection) -> str:
        database = _database(db)
        steps = [_step(name, database).as_string(db) for name in _STEPS]
        return "\n\n".join([*steps, _membership(db, database, role, user).as_string(db) + ";"]) + "\n"

    return catalog.run(work)


def become_owner(db: Connection) -> None:
    """What the transaction makes from now on belongs to the catalog's owner. Raises InvalidInputError for who may not
    act for it; changes nothing where there is no catalog yet."""
    owner = db.execute(query("find_schema_owner")).fetchone()
    if owner is None:
        return
    if not owner["is_own"]:
        raise CatalogRefusedError(
            "The catalog has an older schema than this lakelib needs, and its user may not migrate it.",
            remedy=f"It takes the role {Right.OWN.role.value}: have an owner connect with this lakelib once.",
        )
    db.execute(sql.SQL("set local role {}").format(sql.Identifier(owner["name"])))


def renew_privileges(db: Connection) -> None:
    """The roles that were granted hold for what a migration has brought. Nothing is for everybody."""
    db.execute(query("close_functions"))
    database = _database(db)
    if _has_groups(db, database):
        db.execute(_step("set_privileges", database))


def group_name(role: Role, database: str) -> str:
    """The group that stands for a role of the catalog in a database. Groups are the whole server's."""
    name = f"lake_{role.value}_{database}"
    if _PLAIN.fullmatch(name) and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(database.encode()).hexdigest()[:_DIGEST_LETTERS]
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return f"{plain[: _LONGEST_NAME - _DIGEST_LETTERS - 1]}_{digest}"


def _lock(db: Connection) -> str:
    """Nobody else changes roles until the transaction's end. The database's name."""
    db.execute("select pg_advisory_xact_lock(%s)", (_LOCK_ID,))
    return _database(db)


def _database(db: Connection) -> str:
    row = db.execute("select current_database() as name").fetchone()
    assert row is not None
    return str(row["name"])


def _is_set_up(db: Connection, database: str) -> bool:
    owner = db.execute(query("find_schema_owner")).fetchone()
    return owner is not None and owner["name"] == group_name(Role.OWNER, database) and _has_groups(db, database)


def _has_groups(db: Connection, database: str) -> bool:
    names = [group_name(role, database) for role in Role]
    return len(db.execute(query("find_groups"), {"names": names}).fetchall()) == len(names)


def _members(db: Connection, groups: list[str]) -> list[dict[str, str]]:
    return db.execute(query("list_members"), {"names": groups}).fetchall()


def _membership(db: Connection, database: str, role: Role, user: str) -> sql.Composed:
    """In the name of the owners, where the server keeps who has granted what: so that each of them may revoke it."""
    text = "grant {group} to {user}"
    if role is not Role.OWNER and db.info.server_version >= _KEEPS_GRANTORS:
        text += " granted by {owner}"
    names = {"group": group_name(role, database), "user": user, "owner": group_name(Role.OWNER, database)}
    filled = {name: sql.Identifier(value) for name, value in names.items() if f"{{{name}}}" in text}
    return sql.SQL(text).format(**filled)


def _step(name: str, database: str) -> sql.Composed:
    groups = {role.value: group_name(role, database) for role in Role}
    filled: dict[str, sql.Composable] = {role: sql.Identifier(group) for role, group in groups.items()}
    filled["group_names"] = sql.SQL(", ").join(map(sql.Literal, groups.values()))
    filled["owner_name"] = sql.Literal(groups[Role.OWNER.value])
    wanted = _texts()[name]
    return sql.SQL(wanted).format(**{each: filled[each] for each in filled if f"{{{each}}}" in wanted})


@cache
def _texts() -> dict[str, str]:
    pieces = _NAME.split((resources.files("lakelib.catalog") / "sql" / "roles.sql").read_text())
    return {name: text[: text.rindex(";") + 1].strip() for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def _telling(catalog: Catalog, role: Role, user: str, work: Callable[[], None]) -> None:
    """Raises InvalidInputError for what the server does not let its user do to roles."""
    try:
        work()
    except psycopg.errors.UndefinedObject as error:
        raise InvalidInputError(
            f"The server of {login_of(catalog.url)} knows no user {user!r}.",
            kind="user_not_found",
            remedy=f"Make it first: create role {user} login password '…'.",
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise CatalogRefusedError(
            f"User {user_of(catalog.url) or 'of the catalog'} may not change roles on the server of"
            f" {login_of(catalog.url)}: {error.diag.message_primary}.",
            remedy="An administrator may: who owns the catalog and has CREATEROLE, or a superuser. Have one run what"
            f" `lake grant --print-sql {role.value} {user}` prints, in this database.",
        ) from error
    except psycopg.errors.InvalidGrantOperation as error:
        raise InvalidInputError(
            f"{user!r} cannot have the role {role.value}: {error.diag.message_primary}.",
            kind="invalid_user",
            remedy="Name a user who logs in.",
        ) from error


# What the user of a connection may do: the grants decide; to ask before work is begun spares what would be refused


def load_rights(catalog: Catalog) -> None:
    """Looks which rights the user has, for `require_right` to know."""
    row = catalog.one("load_rights")
    assert row is not None
    catalog.rights = frozenset(Right(name) for name in row["rights"])


def has_right(catalog: Catalog, right: Right) -> bool:
    """Whether the user has the right. One that was granted since is found."""
    if right not in catalog.rights:
        load_rights(catalog)
    return right in catalog.rights


def require_right(catalog: Catalog, right: Right) -> None:
    """Raises InvalidInputError for a user who lacks the right."""
    if not has_right(catalog, right):
        raise right_missing(catalog.url, right)
