"""Interop. Tells a service over HTTP that a partition is done, and takes its answer."""

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import field
from ipaddress import ip_address
from typing import Any, NoReturn
from urllib.parse import urlsplit

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, RetryableError

DEFAULT_TIMEOUT_SECONDS = 10.0
_TRIES = 3
_PAUSE_SECONDS = 0.5
_MOST_ANSWERED = 64 * 1024
_MOST_SHOWN = 200
_LOGIN = re.compile(r"//.*@")
_QUERY = re.compile(r"(?<=://)([^?#]*)[?#].*")
_BUSY = frozenset((408, 425, 429, 500, 502, 503, 504))
"""What a service answers that may work the next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReport:
    """Where to report to. `params` are handed to the service as they are."""

    url: str = field(repr=False)
    params: Mapping[str, Any] = field(default_factory=dict, repr=False)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    """How long one try may wait for the service at a time."""


def check_report(report: HttpReport) -> None:
    """Raises InvalidInputError unless the report can be sent to such an address."""
    try:
        parts = urlsplit(report.url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        is_right = False
    if not is_right or not report.url.isascii() or any(character.isspace() for character in report.url):
        raise InvalidInputError(
            f"http_report: {_shown(report.url)!r} is no address to report to.",
            kind="invalid_report",
            remedy="Give a URL: http://host:port/path.",
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidInputError(
            f"http_report: the address {_shown(report.url)!r} holds a login, which would be seen in logs.",
            kind="invalid_report",
            remedy="Let the service know its callers by something else, such as a token in params.",
        )
    try:
        json.dumps(dict(report.params), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"http_report: params cannot be written as JSON: {error}.",
            kind="invalid_report",
            remedy="Give names and values of JSON's types.",
        ) from None


def send_report(report: HttpReport, *, table: str, path: str, partition: str) -> None:
    """The service has been told, and has answered JSON with the result SUCCESS.

    It is told again, a few times, where the connection fails or it is busy: it may hear of a partition more than once.
    Raises RetryableError when it did not answer so.
    """
    body = {"params": dict(report.params), "table": table, "path": path, "partition": partition}
    content = json.dumps(body, allow_nan=False).encode()
    failure = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_SECONDS * attempt)
        try:
            answer = _post(report, content)
        except urllib.error.HTTPError as error:
            with error:
                failure = f"it answered with status {error.code}, {_shown(str(error.reason))}"
                if error.code not in _BUSY:
                    break
        except (OSError, http.client.HTTPException) as error:
            failure = _shown(str(getattr(error, "reason", error) or type(error).__name__))
        else:
            _check_answer(report, answer)
            return
    _fail(report, failure)


def _post(report: HttpReport, content: bytes) -> bytes:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "lakelib"}
    request = urllib.request.Request(report.url, data=content, headers=headers, method="POST")
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if _is_this_machine(urlsplit(report.url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    with urllib.request.build_opener(*handlers).open(request, timeout=report.timeout_seconds) as answer:
        read: bytes = answer.read(_MOST_ANSWERED + 1)
    return read


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST becomes a GET that nobody meant: the redirect is the answer."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _is_this_machine(host: str) -> bool:
    """A proxy of the environment cannot reach what listens here."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _check_answer(report: HttpReport, content: bytes) -> None:
    try:
        answer = json.loads(content) if len(content) <= _MOST_ANSWERED else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("result") != "SUCCESS":
        _fail(report, f"it answered {_shown(content.decode(errors='replace'))!r}")


def _fail(report: HttpReport, failure: str) -> NoReturn:
    raise RetryableError(
        f"The service at {_shown(report.url)} could not be told that the partition is done: {failure}.",
        kind="report_failed",
        remedy='It must answer {"result": "SUCCESS"}. The partition is marked; mark it again to report it again.',
    )


def _shown(text: object) -> str:
    """Short, and of an address neither a login nor what is asked: a token may be in both."""
    shown = _QUERY.sub(r"\1?…", _LOGIN.sub("//…@", str(text)))
    return shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "…"
