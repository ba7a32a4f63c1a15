"""Airflow's REST API, as far as people and tests here use it. Standard library only."""

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from lakelib.dataclass import dataclass

_TIMEOUT_SECONDS = 30
_POLL_SECONDS = 0.5


class ApiError(Exception):
    """An answer that is not a success: `status` and what Airflow says."""

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        super().__init__(f"{method} {path}: {status} {body}")
        self.status = status


def health(url: str) -> dict[str, str]:
    """The status of each part as Airflow reports it; empty while nobody answers."""
    try:
        with urllib.request.urlopen(f"{url}/api/v2/monitor/health", timeout=5) as answer:
            found: dict[str, dict[str, str | None]] = json.load(answer)
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    return {part: status["status"] or "absent" for part, status in found.items()}


def log_in(url: str, user: str, password: str) -> "Api":
    """Raises ApiError (401) if the password is wrong."""
    api = Api(url=url)
    token = api.post("/auth/token", {"username": user, "password": password})["access_token"]
    return Api(url=url, token=token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    url: str
    token: str | None = field(default=None, repr=False)

    def get(self, path: str, **query: object) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        suffix = f"?{urllib.parse.urlencode(given, doseq=True)}" if given else ""
        return self._ask("GET", path + suffix, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._ask("POST", path, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._ask("PATCH", path, body)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {self.token}"} if self.token else {}),
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise ApiError(method, path, error.code, error.read().decode(errors="replace")) from error
        return json.loads(text) if text else None


def wait_for(find: Callable[[], Any], *, seconds: float, what: str, pause: float = _POLL_SECONDS) -> Any:
    """Asks until the answer is not None, again after each pause. Raises TimeoutError naming what was waited for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = find()
        if found is not None:
            return found
        time.sleep(pause)
    raise TimeoutError(f"{what}: not within {seconds:g} s")
