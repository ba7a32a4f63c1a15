"""Use cases: a user of the database gets a role of the catalog, and loses it."""

from lakelib.catalog import roles
from lakelib.catalog.roles import require_right
from lakelib.errors import InvalidInputError
from lakelib.model.roles import Grant, Right, Role
from lakelib.model.text import is_said
from lakelib.ops.runtime import Runtime

_LONGEST_NAME = 63


def grant(runtime: Runtime, role: str, user: str) -> None:
    """The user has the role afterwards. Raises InvalidInputError for a role or a user that there is not, and for whom
    the database does not let grant it."""
    wanted, name = _parse_role(role), _parse_user(user)
    require_right(runtime.catalog, Right.OWN)
    roles.grant(runtime.catalog, wanted, name)


def revoke(runtime: Runtime, role: str, user: str) -> None:
    """The user does not have the role any more. Raises NotFoundError if it was not granted."""
    wanted, name = _parse_role(role), _parse_user(user)
    require_right(runtime.catalog, Right.OWN)
    roles.revoke(runtime.catalog, wanted, name)


def list_grants(runtime: Runtime) -> list[Grant]:
    return roles.list_grants(runtime.catalog)


def grant_sql(runtime: Runtime, role: str, user: str) -> str:
    """What an administrator runs to grant the role."""
    return roles.grant_sql(runtime.catalog, _parse_role(role), _parse_user(user))


def _parse_role(role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidInputError(
            f"{role!r} is no role.",
            kind="invalid_role",
            remedy=f"The roles: {', '.join(each.value for each in Role)}.",
        ) from None


def _parse_user(user: str) -> str:
    if not is_said(user) or len(user.encode()) > _LONGEST_NAME:
        raise InvalidInputError(
            f"{user!r} is no name of a user.",
            kind="invalid_user",
            remedy=f"Give the name with which it logs in to PostgreSQL, of up to {_LONGEST_NAME} bytes.",
        )
    return user
