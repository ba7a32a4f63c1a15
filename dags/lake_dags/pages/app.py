"""The routes of the pages, each beside the JSON of what it shows.

Everything asks for Airflow's login. A page reads; the two forms, publish and discard, decide about a commit.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Annotated, Any
from uuid import UUID

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, Form, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException as AnyHTTPException

from lake_dags.pages import rights
from lake_dags.pages.drawing import calendar_of, check_lines, totals_of
from lake_dags.pages.lakes import Lakes
from lake_dags.pages.links import Links
from lake_dags.pages.rendering import HEADERS, read_file, show
from lake_dags.pages.rights import User
from lakelib.errors import (
    CatalogRefusedError,
    ConflictError,
    InvalidInputError,
    LakeError,
    NotFoundError,
    RejectedError,
    RetryableError,
)
from lakelib.specs.folder import dag_id_of

PAGES_URL = "/lake-status"
_LONGEST_REASON = 2000
_MOST_VERDICTS = 60
_STATUS = {
    CatalogRefusedError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    RejectedError: 409,
    RetryableError: 503,
    InvalidInputError: 400,
}
"""By the first family that an error belongs to."""
_FILES = {"style.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}

app = FastAPI(title="The lake", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(get_user)])
lakes = Lakes()


# All tables


@app.get("/")
def index(request: Request, user: User) -> HTMLResponse:
    """Those tables first that somebody should look at."""
    seen, wrong = _look(user)
    ordered = replace(seen, tables=tuple(sorted(seen.tables, key=lambda each: not each.troubles)))
    values = {"lake": ordered, "totals": totals_of(seen.tables), "wrong_specs": wrong, "page": "tables"}
    return show("index.html", _links(request), values)


@app.get("/json")
def index_json(user: User) -> Response:
    seen, wrong = _look(user)
    return _json({**_fields(seen), "wrong_specs": wrong})


def _look(user: User) -> tuple[Any, list[str]]:
    """What the user may see."""
    from lakelib.ops.status import look

    specs = lakes.specs()
    with lakes.opened() as lake:
        found = look(lake.runtime, specs.specs, lakes.memory)
    may_see = rights.seen_by(user, (each.table for each in found.tables))
    seen = replace(found, tables=tuple(each for each in found.tables if each.table in may_see))
    return seen, [error.message for error in specs.errors.values()]


# One table


@app.get("/tables/{table}")
def table(request: Request, user: User, table: str) -> HTMLResponse:
    detail = _detail(user, table)
    drawn = calendar_of(detail.every, detail.partitions)
    values = {"detail": detail, "calendar": drawn, "dag_id": dag_id_of(table), "page": "tables"}
    return show("table.html", _links(request), values)


@app.get("/json/tables/{table}")
def table_json(user: User, table: str) -> Response:
    return _json(_fields(_detail(user, table)))


def _detail(user: User, table: str) -> Any:
    from lakelib.ops.status import look_at_table

    rights.require_seeing(user, table)
    with lakes.opened() as lake:
        return look_at_table(lake.runtime, table, lakes.specs().specs, lakes.memory)


@app.get("/tables/{table}/partitions/{key:path}")
def partition(request: Request, user: User, table: str, key: str) -> HTMLResponse:
    values = {"table": table, "key": key, "commits": _commits_about(user, table, key), "page": "tables"}
    return show("partition.html", _links(request), values)


@app.get("/json/tables/{table}/partitions/{key:path}")
def partition_json(user: User, table: str, key: str) -> Response:
    return _json({"table": table, "partition": key, "commits": _commits_about(user, table, key)})


def _commits_about(user: User, table: str, key: str) -> Any:
    from lakelib.ops.create import find_table
    from lakelib.ops.status import list_commits_about

    rights.require_seeing(user, table)
    with lakes.opened() as lake:
        return list_commits_about(lake.runtime, find_table(lake.runtime, table), key)


@app.get("/tables/{table}/checks")
def checks(request: Request, user: User, table: str) -> HTMLResponse:
    judged = _judged(user, table)
    values = {"table": table, "judged": judged, "lines": check_lines(judged), "page": "tables"}
    return show("checks.html", _links(request), values)


@app.get("/json/tables/{table}/checks")
def checks_json(user: User, table: str) -> Response:
    return _json({"table": table, "verdicts": _judged(user, table)})


def _judged(user: User, table: str) -> Any:
    from lakelib.ops.create import find_table
    from lakelib.ops.status import list_judged

    rights.require_seeing(user, table)
    with lakes.opened() as lake:
        return list_judged(lake.runtime, find_table(lake.runtime, table), _MOST_VERDICTS)


# Commits


@app.get("/quarantine")
def quarantine(request: Request, user: User) -> HTMLResponse:
    return show("quarantine.html", _links(request), {"commits": _quarantine(user), "page": "quarantine"})


@app.get("/json/quarantine")
def quarantine_json(user: User) -> Response:
    return _json({"commits": _quarantine(user)})


def _quarantine(user: User) -> Any:
    from lakelib.ops.status import list_quarantine

    with lakes.opened() as lake:
        found = list_quarantine(lake.runtime)
    may_see = rights.seen_by(user, {each.table for each in found})
    return [each for each in found if each.table in may_see]


@app.get("/commits/{commit_id}")
def commit(request: Request, user: User, commit_id: UUID) -> HTMLResponse:
    return _show_commit(request, user, commit_id)


@app.get("/json/commits/{commit_id}")
def commit_json(user: User, commit_id: UUID) -> Response:
    table, found, verdict = _commit(user, commit_id)
    return _json({"table": table, "commit": found, "verdict": verdict})


@app.get("/commits/{commit_id}/report")
def report(user: User, commit_id: UUID) -> HTMLResponse:
    """As the job has written it, made anew of what the catalog keeps."""
    from lakelib.gates.report import report_html

    table, found, verdict = _commit(user, commit_id)
    if verdict is None:
        raise HTTPException(404, f"No gate has judged commit {commit_id} of {table}.")
    headers = HEADERS | {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
    return HTMLResponse(report_html(verdict, table=table, state=found.state), headers=headers)


@app.post("/commits/{commit_id}/publish")
def publish(
    request: Request,
    user: User,
    commit_id: UUID,
    token: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
) -> Response:
    from lakelib.ops.publish import publish as publish_commits

    def work(lake: Any, by: str, why: str) -> None:
        publish_commits(lake.runtime, [commit_id], by=by, reason=why)

    return _decide(request, user, commit_id, token, reason, work)


@app.post("/commits/{commit_id}/discard")
def discard(
    request: Request,
    user: User,
    commit_id: UUID,
    token: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
) -> Response:
    from lakelib.ops.decide import discard_staged

    def work(lake: Any, by: str, why: str) -> None:
        discard_staged(lake.runtime, commit_id, by, why)

    return _decide(request, user, commit_id, token, reason, work)


def _decide(
    request: Request, user: User, commit_id: UUID, token: str, reason: str, work: Callable[[Any, str, str], None]
) -> Response:
    """Rights first, then whether the form is ours, then what it says: nothing is changed before all are right."""
    table, found, _ = _commit(user, commit_id)
    rights.require_deciding(user, table)
    rights.check_form(request, user, commit_id, token)
    why = " ".join("".join(each if each.isprintable() else " " for each in reason).split())
    if not 0 < len(why) <= _LONGEST_REASON:
        told = f"Say why, in up to {_LONGEST_REASON:,} characters. Nothing was changed."
        return _show_commit(request, user, commit_id, told=told, reason=why[:_LONGEST_REASON], status_code=400)
    if not found.is_waiting and found.state != "rejected":
        told = f"The commit is {found.state}: there is nothing left to decide. Nothing was changed."
        return _show_commit(request, user, commit_id, told=told, reason=why, status_code=409)
    try:
        with lakes.opened() as lake:
            work(lake, rights.name_of(user), why)
    except (ConflictError, RejectedError, InvalidInputError) as error:
        told = f"{error.message} {error.remedy}"
        return _show_commit(request, user, commit_id, told=told, reason=why, status_code=_status_of(error))
    return RedirectResponse(_links(request).commit(commit_id), status_code=303)


def _reads(properties: Mapping[str, str]) -> dict[str, str]:
    """By table the snapshot that was read, and how many commits of the same transaction on top of it."""
    found = {name[6:]: seen for name, seen in sorted(properties.items()) if name.startswith("reads.")}
    return {table: seen + _staged(properties.get(f"reads_staged.{table}")) for table, seen in found.items()}


def _staged(said: str | None) -> str:
    count = (said or "").partition(" ")[0]
    return f", and {count} commit{'' if count == '1' else 's'} of its transaction" if count else ""


def _show_commit(
    request: Request, user: User, commit_id: UUID, *, told: str = "", reason: str = "", status_code: int = 200
) -> HTMLResponse:
    table, found, verdict = _commit(user, commit_id)
    may_decide = rights.may_decide(user, table)
    values = {
        "table": table,
        "commit": found,
        "verdict": verdict,
        "reads": _reads(found.properties),
        "may_decide": may_decide,
        "token": rights.make_token(user, commit_id) if may_decide else "",
        "told": told,
        "reason": reason,
        "longest_reason": _LONGEST_REASON,
        "page": "quarantine" if found.state in ("staged", "rejected") else "tables",
    }
    return show("commit.html", _links(request), values, status_code)


def _commit(user: User, commit_id: UUID) -> tuple[str, Any, Any]:
    """Its table, what has become of it, and its newest verdict."""
    from lakelib.ops.judge import find_verdict
    from lakelib.ops.status import load_commit_about

    with lakes.opened() as lake:
        table, found = load_commit_about(lake.runtime, commit_id)
        rights.require_seeing(user, table)
        return table, found, find_verdict(lake.runtime, commit_id)


# What is beside the pages


@app.get("/static/{name}")
def static(name: str) -> Response:
    if name not in _FILES:
        raise HTTPException(404, f"There is no file {name}.")
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, max-age=300"}
    return Response(read_file(name), media_type=_FILES[name], headers=headers)


@app.exception_handler(LakeError)
def tell_lake_error(request: Request, error: LakeError) -> Response:
    code = _status_of(error)
    headers = {"Retry-After": "5"} if code == 503 else {}
    return _tell(request, code, error.kind, error.message, error.remedy, headers)


@app.exception_handler(AnyHTTPException)
def tell_http_error(request: Request, error: AnyHTTPException) -> Response:
    return _tell(request, error.status_code, "http", str(error.detail), "", dict(error.headers or {}))


@app.exception_handler(RequestValidationError)
def tell_wrong_request(request: Request, error: RequestValidationError) -> Response:
    return _tell(request, 404, "http", "There is no such page: what the address names is no id of a commit.", "", {})


def _tell(request: Request, code: int, kind: str, message: str, remedy: str, headers: dict[str, str]) -> Response:
    told = {"status": code, "kind": kind, "message": message, "remedy": remedy}
    if request.url.path.removeprefix(request.scope["root_path"]).startswith("/json"):
        return _json({"error": told}, code, headers)
    answer = show("error.html", _links(request), {"error": told, "page": ""}, code)
    answer.headers.update(headers)
    return answer


def _status_of(error: LakeError) -> int:
    return next((code for family, code in _STATUS.items() if isinstance(error, family)), 500)


def _links(request: Request) -> Links:
    root = str(request.scope["root_path"]).rstrip("/")
    return Links(root, root.removesuffix(PAGES_URL))


def _json(value: Any, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    from lakelib.cli.values import json_value

    text = json.dumps(json_value(value), ensure_ascii=False, allow_nan=False)
    return Response(text, code, {"Cache-Control": "no-store", **(headers or {})}, media_type=JSONResponse.media_type)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}
