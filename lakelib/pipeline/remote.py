"""A session on a Spark Connect server that stays. This process is a client: it starts no JVM.

A server that goes away, or forgets the session, costs the job: it ends as one that is worth another try, after a
minute at most in which the server may come back. Nothing is visible of it then, and the next try begins anew.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lakelib.errors import InvalidInputError, RetryableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEME = "sc://"
_PATIENCE_SECONDS = 45.0
"""A server may be away for so long. PySpark's own patience is ten minutes, for each thing that is asked."""
_ONE_OUTAGE_SECONDS = 60.0
"""Failures that are no further apart have one cause."""

_GONE = ("INVALID_HANDLE", "NO_ACTIVE_SESSION")
"""Conditions in which a session or an operation is known no more."""
_GONE_WORDS = ("Received incorrect server side session identifier", "SparkContext was shut down")
"""The same, where there is no condition."""
_DETAILS = re.compile(r'^\s*details = "(.*)"$', re.MULTILINE)
"""What gRPC says of an error, among much else."""


@contextmanager
def connected(remote: str, settings: Mapping[str, str]) -> Iterator["SparkSession"]:
    """A session of its own with these settings; the server forgets it at the end. Raises RetryableError for a server
    that cannot be reached, or is lost meanwhile, InvalidInputError for an address that is none and for a server that
    does not let us in."""
    session = _client(remote)
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield session
    except Exception as error:
        told = _told(error, remote)
        if told is None:
            raise
        raise told from error
    finally:
        session.client.set_retry_policies([])  # nothing depends on whether the server hears it
        session.stop()


def _client(remote: str) -> Any:
    """Asks the server nothing yet."""
    from pyspark.errors import PySparkValueError
    from pyspark.sql import SparkSession

    try:
        session: Any = SparkSession.builder.remote(remote).create()
    except (PySparkValueError, ValueError):
        raise InvalidInputError(
            f"{_shown(remote)} is no address of a Spark Connect server.",
            kind="invalid_remote",
            remedy="Write sc://host:port, with parameters behind it as in sc://host:443/;use_ssl=true.",
        ) from None
    session.client.set_retry_policies([_patience()])
    return session


def _patience() -> Any:
    """How PySpark waits for a server that does not answer. Once it has been away for too long, no more is hoped for."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    class Patience(DefaultPolicy):
        first = last = float("-inf")

        def can_retry(self, e: BaseException) -> bool:
            if not super().can_retry(e):
                return False
            now = time.monotonic()
            if now - self.last > _ONE_OUTAGE_SECONDS:
                self.first = now
            self.last = now
            return now - self.first < _PATIENCE_SECONDS

    return Patience(
        max_retries=None,
        backoff_multiplier=2.0,
        initial_backoff=200,
        max_backoff=4000,
        max_server_retry_delay=4000,
    )


def _told(error: BaseException, remote: str) -> InvalidInputError | RetryableError | None:
    """What lakelib says of an error of the connection; None for any other."""
    from grpc import StatusCode

    if _status_of(error) in (StatusCode.UNAUTHENTICATED, StatusCode.PERMISSION_DENIED):
        return InvalidInputError(
            f"The Spark Connect server at {_shown(remote)} does not let this job in.",
            kind="spark_unauthenticated",
            remedy="Give its token in SPARK_CONNECT_AUTHENTICATE_TOKEN.",
        )
    if not _is_lost(error):
        return None
    first = next(each for each in reversed(_with_earlier(error)) if _is_lost(each))
    return RetryableError(
        f"The Spark Connect server at {_shown(remote)} is away, or was started anew: {_in_a_line(first)}",
        kind="spark_lost",
        remedy="Repeat the job once the server is up: nothing of it is visible.",
    )


def _is_lost(error: BaseException) -> bool:
    from grpc import StatusCode
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return False
    condition = error.getCondition()
    if condition is not None:
        return condition.startswith(_GONE)
    is_away = _status_of(error) in (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED)
    return is_away or any(word in str(error) for word in _GONE_WORDS)


def _status_of(error: BaseException) -> object:
    """Of the call; None for an error that came from none."""
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    return error.getGrpcStatusCode() if isinstance(error, SparkConnectGrpcException) else None


def _with_earlier(error: BaseException) -> list[BaseException]:
    """The error, and those that it was raised after: what tidies up fails, too."""
    found = [error]
    while (before := found[-1].__context__) is not None:
        found.append(before)
    return found


def _shown(remote: str) -> str:
    """Without parameters, of which one may be a token."""
    return SCHEME + urlsplit(remote).netloc


def _in_a_line(error: BaseException) -> str:
    text = str(error).strip()
    found = _DETAILS.search(text)
    return (found[1] if found else text.partition("\n")[0])[:300]
