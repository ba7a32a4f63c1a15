"""What the driver's errors mean to the caller: whether the connection is lost, what will pass, what to say; and where
the database denies its user a right, which one, and the role that has it."""

import re
from typing import Any

import psycopg
from psycopg import conninfo

from lakelib.catalog.address import login_of, place_of
from lakelib.catalog.connections import NoneFreeError
from lakelib.errors import CatalogRefusedError, InvalidInputError, LakeError, OutcomeUnknownError, RetryableError
from lakelib.model.roles import Right

SERVER_SPOKE = "FATAL:"
"""What a server says that is there and does not take a connection, as while it starts."""
_RIGHTS_OF_FUNCTIONS = {
    **dict.fromkeys(
        (
            "take_lease_v1",
            "take_range_v1",
            "listen_v1",
            "renew_lease_v1",
            "release_lease_v1",
            "find_moment_v1",
            "holds_past_v1",
            "ended_tags_v1",
            "definition_v1",
            "has_right_v1",
            "server_v1",
            "check_identity_v1",
        ),
        Right.READ,
    ),
    **dict.fromkeys(
        (
            "stage_v1",
            "amend_v1",
            "publish_v1",
            "publish_advancing_v1",
            "tell_v1",
            "make_consumer_v1",
            "remove_consumer_v1",
            "retarget_v1",
            "turn_v1",
            "release_turn_v1",
            "end_v1",
            "reserve_schema_v1",
            "overtake_appends_v1",
            "bind_warehouse_v1",
            "forget_success_file_v1",
        ),
        Right.WRITE,
    ),
    **dict.fromkeys(("judge_v1", "set_tag_v2", "delete_tag_v1", "mark_partition_v1"), Right.JUDGE),
    **dict.fromkeys(
        (
            "drop_spent_leases_v1",
            "expire_commits_v1",
            "expire_tags_v1",
            "expire_snapshots_v1",
            "forget_dependencies_v1",
            "queue_files_of_commits_v1",
            "queue_removed_files_v1",
            "forget_deleted_files_v1",
            "mark_orphans_v1",
            "retire_dropped_v1",
            "queue_files_of_dropped_v1",
            "forget_dropped_v1",
            "forget_samples_v1",
            "reset_marks_of_dropped_v1",
        ),
        Right.MAINTAIN,
    ),
}
_FUNCTION = re.compile(r"\b[a-z_]+_v\d+\b")
_SCHEMA = re.compile(r"\blake\s*$")


BUSY = (
    NoneFreeError,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.IdleInTransactionSessionTimeout,
)
PASSING = (psycopg.OperationalError, psycopg.InterfaceError, *BUSY)
_FULL_WORDS = ("too many clients", "remaining connection slots", "too many connections", "no more connections allowed")
LASTING_WORDS = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    '" does not exist',
    "is not permitted to log in",
    "permission denied for database",
    "invalid sslmode value",
    "server does not support SSL",
    "certificate verify failed",
)
"""A refused connection carries no error code, only the server's words."""
_TOO_MUCH = "54"
"""The class of error codes for statements that are beyond a limit of the server."""


class CatalogBusyError(RetryableError):
    """Others hold what a unit of work needs. Nothing was changed."""

    default_kind = "catalog_busy"


def tell_misuse(url: str, connection: psycopg.Connection[Any], error: BaseException) -> None:
    """Raises LakeError if the error is of what driver or server cannot do, however often it is asked: the driver gives
    no code to its own refusals, as it gives none to a lost connection, but then the server still answers."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return
    is_own = error.sqlstate is None and _is_answered(connection)
    if is_own or (error.sqlstate or "").startswith(_TOO_MUCH):
        raise _misused(url, error) from error


def _is_answered(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server still answers. A connection that was cut off may look open until it is used, and one that was
    cut off among statements sent together stays between them."""
    if connection.closed or connection.pgconn.pipeline_status:
        return False
    try:
        connection.execute(b"") if connection.autocommit else connection.rollback()
    except psycopg.Error:
        return False
    return not connection.closed


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or was never there, rather than that a statement failed."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P", "25P03"))


def is_full(error: psycopg.Error) -> bool:
    """A refused connection carries no error code."""
    return error.sqlstate is None and any(word in str(error) for word in _FULL_WORDS)


def refused(url: str, error: Exception) -> LakeError:
    return CatalogRefusedError(
        f"The catalog at {login_of(url)} refused the connection: {_said(error)}.",
        remedy="Check address, user, password and database in the setting catalog (LAKE_CATALOG, or lake.pg.url in the "
        "properties file).",
    )


def failed(url: str, error: psycopg.Error) -> LakeError:
    """What is neither the connection's fault nor foreseen by the work itself."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return denied(url, error)
    return LakeError(
        f"The catalog at {login_of(url)} refused a statement: {_said(error)}.",
        kind="catalog_failed",
        remedy="Nothing was changed. Find out whether its schema was changed by hand.",
    )


def _misused(url: str, error: psycopg.Error) -> LakeError:
    return LakeError(
        f"A statement cannot be sent to the catalog at {login_of(url)}: {_said(error)}.",
        kind="catalog_failed",
        remedy="Nothing was changed. Ask for less at once, such as a predicate of fewer values.",
    )


def gave_up(url: str, error: psycopg.Error, waited_seconds: float) -> LakeError:
    """What the patience was spent on; nothing was changed."""
    place, said = login_of(url), _said(error)
    if is_full(error):
        return RetryableError(
            f"The catalog at {place} had no connection to give for {waited_seconds:.0f} s: {said}.",
            kind="catalog_full",
            remedy="Nothing was changed. Raise max_connections of the server, put a pooler before it, or run fewer"
            " processes at once; a lake holds a connection only while it works, and for some seconds after.",
        )
    if isinstance(error, BUSY):
        asked = "".join(f" (in {name})" for name in getattr(error, "__notes__", ()))
        return CatalogBusyError(
            f"The catalog at {place} was busy for {waited_seconds:.0f} s: {said}{asked}.",
            remedy="Nothing was changed. Try again; pg_stat_activity and pg_locks of the server show who holds what.",
        )
    return RetryableError(
        f"The catalog at {place} stayed out of reach for {waited_seconds:.0f} s: {said}.",
        kind="catalog_unreachable",
        remedy="Nothing was changed. Repeat the call once the server is back, with the same idempotency key. If there"
        " never was one, correct the setting catalog (LAKE_CATALOG).",
    )


def outcome_unknown(url: str, error: BaseException) -> LakeError:
    return OutcomeUnknownError(
        f"The catalog at {login_of(url)} went out of reach before it confirmed a change: {_said(error)}.",
        kind="outcome_unknown",
        remedy="Whether the last request took effect is unknown: repeat it, with the same idempotency key, once the"
        " server is back.",
    )


def never_reached(url: str, error: BaseException) -> LakeError:
    return RetryableError(
        f"Cannot reach PostgreSQL at {place_of(url)}: {_said(error)}.",
        kind="catalog_unreachable",
        remedy="Start it, or correct the setting catalog (LAKE_CATALOG, or lake.pg.url in the properties file). "
        "Nothing was changed.",
    )


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")


def denied(url: str, error: psycopg.errors.InsufficientPrivilege) -> InvalidInputError:
    """The server's words are in its own language: the names in them are not."""
    said = " ".join((error.diag.message_primary or str(error)).split()).rstrip(".")
    return right_missing(url, _missing(error, said), said)


def right_missing(url: str, right: Right, said: str = "") -> InvalidInputError:
    """What to raise for a user who lacks a right; with the server's own words, if it has said any."""
    user, role = user_of(url), right.role.value
    named = f"user {user}" if user else "its user"
    return CatalogRefusedError(
        f"The catalog at {login_of(url)} does not let {named} {right.words}{f': {said}' if said else ''}.",
        remedy=f"It takes the role {role}. Have an owner run `lake grant {role} {user or 'USER'}`, or name another user"
        " in the setting catalog (LAKE_CATALOG).",
    )


def user_of(url: str) -> str | None:
    """The user that an address names."""
    try:
        found = conninfo.conninfo_to_dict(url).get("user")
    except psycopg.ProgrammingError:
        return None
    return None if found is None else str(found)


def _missing(error: psycopg.errors.InsufficientPrivilege, said: str) -> Right:
    """The functions name the right; else it is told by what was denied. Tables are for owners."""
    if error.diag.message_detail in {right.value for right in Right}:
        return Right(error.diag.message_detail)
    function = _FUNCTION.search(said)
    if function is not None:
        return _RIGHTS_OF_FUNCTIONS.get(function[0], Right.OWN)
    return Right.READ if _SCHEMA.search(said) else Right.OWN
