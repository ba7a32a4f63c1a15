"""What to say where the database denies its user a right: which one, and the role that has it."""

import re

import psycopg
from psycopg import conninfo

from lakelib.catalog.address import login_of
from lakelib.errors import CatalogRefusedError, InvalidInputError
from lakelib.model.roles import Right

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
