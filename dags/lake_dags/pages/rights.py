"""Who may see a table and decide about its commits: whoever may see its ingest DAG, and answer its reviews.

A form carries a token that this server has made for this user and this commit, and that ends: another site can make a
browser send a form, and cannot know the token.
"""

import hashlib
import hmac
import time
from collections.abc import Iterable
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.configuration import conf
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, Request

from lakelib.specs.folder import dag_id_of

User = Annotated[BaseUser, Depends(get_user)]
TOKEN_SECONDS = 4 * 3600
_LONGEST_NAME = 200


def may_see(user: BaseUser, table: str) -> bool:
    return _is_authorized(user, table, "GET", None)


def may_decide(user: BaseUser, table: str) -> bool:
    return may_see(user, table) and _is_authorized(user, table, "PUT", DagAccessEntity.HITL_DETAIL)


def seen_by(user: BaseUser, tables: Iterable[str]) -> frozenset[str]:
    """Those of the tables that the user may see."""
    return frozenset(table for table in tables if may_see(user, table))


def require_seeing(user: BaseUser, table: str) -> None:
    if not may_see(user, table):
        raise HTTPException(403, f"You may not see {table}: that takes the right to read the DAG {dag_id_of(table)}.")


def require_deciding(user: BaseUser, table: str) -> None:
    require_seeing(user, table)
    if not may_decide(user, table):
        raise HTTPException(
            403,
            f"You may not decide about commits of {table}: that takes the right to answer reviews of the DAG"
            f" {dag_id_of(table)}.",
        )


def name_of(user: BaseUser) -> str:
    """As it is kept with what the user decides."""
    shown = "".join(each if each.isprintable() else " " for each in str(user.get_name() or user.get_id()))
    return shown[:_LONGEST_NAME].strip() or "somebody"


def make_token(user: BaseUser, commit_id: object) -> str:
    until = int(time.time()) + TOKEN_SECONDS
    return f"{until}.{_sign(user, commit_id, until)}"


def check_form(request: Request, user: BaseUser, commit_id: object, token: str) -> None:
    """Raises HTTPException for a form that this server has not made for this user and commit, or too long ago."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, "This form was sent by another site. Nothing was changed.")
    until, _, signature = token.partition(".")
    is_ours = until.isascii() and until.isdecimal() and len(until) < 20
    if not is_ours or not hmac.compare_digest(signature.encode(), _sign(user, commit_id, int(until)).encode()):
        raise HTTPException(
            403, "This form was not made for you by this page. Nothing was changed: load the page anew."
        )
    if int(until) < time.time():
        raise HTTPException(403, "This form is too old. Nothing was changed: load the page anew.")


def _sign(user: BaseUser, commit_id: object, until: int) -> str:
    key = conf.get_mandatory_value("api", "secret_key").encode()
    said = f"lake form\0{user.get_id()}\0{commit_id}\0{until}"
    return hmac.new(key, said.encode(), hashlib.sha256).hexdigest()


def _is_authorized(user: BaseUser, table: str, method: Any, entity: DagAccessEntity | None) -> bool:
    dag_id = dag_id_of(table)
    details = DagDetails(id=dag_id, team_name=_team_of(dag_id))
    return bool(get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=user))


def _team_of(dag_id: str) -> str | None:
    return DagModel.get_team_name(dag_id) if conf.getboolean("core", "multi_team") else None
