"""The Spark session of a job: the one that spark-submit prepares, one on a Spark Connect server that stays, or one of
the job's own. What it makes of dates and moments is the same on every machine: its time zone is UTC.

Spark is loaded when a session is opened: jobs that need none do not wait for it. Of a Spark Connect server this process
is a client: it starts no JVM. A server that goes away, or forgets the session, costs the job: it ends as one that is
worth another try, after a minute at most in which the server may come back. Nothing is visible of it then, and the next
try begins anew.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lakelib.errors import InvalidInputError, RetryableError
from lakelib.pipeline.arguments import Surroundings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULT_MASTER = "local[*]"
_REMOTE = "SPARK_REMOTE"
PREPARED = "PYSPARK_GATEWAY_PORT"
"""What spark-submit sets: the master is its to say."""
SCHEME = "sc://"
_PATIENCE_SECONDS = 45.0
"""A server may be away for so long. PySpark's own patience is ten minutes, for each thing that is asked."""


_TIME_ZONE = "spark.sql.session.timeZone"
_EVERY_SECONDS = 2.0


@contextmanager
def opened_session(name: str, around: Surroundings, given: "SparkSession | None") -> Iterator["SparkSession"]:
    """Stops the session at the end, unless it was given. Raises RetryableError if a Spark Connect server is lost."""
    if given is not None:
        yield given
        return
    if around.remote is not None and PREPARED not in os.environ:
        with connected(around.remote, {_TIME_ZONE: "UTC", **around.spark_conf}) as session:
            yield session
        return
    session = _started(name, around.master)
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def watched_session(name: str, around: Surroundings, given: "SparkSession | None") -> Iterator["SparkSession"]:
    """As `opened_session`; how far its stages are is told meanwhile."""
    with opened_session(name, around, given) as session, told_progress(session, around.progress):
        yield session


@contextmanager
def session_if_named(name: str, around: Surroundings, given: "SparkSession | None") -> Iterator["SparkSession | None"]:
    """As `watched_session`, where a session, a master or a server is named; None: this process does the work."""
    if given is None and around.master is None and around.remote is None and PREPARED not in os.environ:
        yield None
        return
    with watched_session(name, around, given) as session:
        yield session


def _started(name: str, master: str | None) -> "SparkSession":
    """With a JVM of its own, or that of spark-submit."""
    from pyspark.sql import SparkSession

    os.environ.pop(_REMOTE, None)  # PySpark would prefer it to the master that was named
    builder = SparkSession.builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    builder = builder.config(_TIME_ZONE, "UTC")
    if PREPARED not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master or _DEFAULT_MASTER)
    return builder.getOrCreate()


# Progress


@contextmanager
def told_progress(session: "SparkSession", wanted: bool | None) -> Iterator[None]:
    """Meanwhile tells on stderr now and then how far Spark's stages are."""
    from lakelib.work.spark.sessions import is_connect

    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield
        return
    with _told_by_server(session) if is_connect(session) else _told_by_driver(session):
        yield


@contextmanager
def _told_by_server(session: Any) -> Iterator[None]:
    """It says by itself, every two seconds."""
    start, last = time.monotonic(), ""

    def tell(stages: Iterable[Any] | None, **rest: object) -> None:
        nonlocal last
        line = "; ".join(
            f"stage {stage.stage_id}: {stage.num_completed_tasks} of {stage.num_tasks} tasks"
            for stage in stages or ()
            if not stage.done
        )
        _tell(line if line != last else "", start)
        last = line

    session.registerProgressHandler(tell)
    try:
        yield
    finally:
        session.removeProgressHandler(tell)


@contextmanager
def _told_by_driver(session: "SparkSession") -> Iterator[None]:
    done = threading.Event()
    teller = threading.Thread(target=_tell_until, args=(done, session), name="job-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell_until(done: threading.Event, session: "SparkSession") -> None:
    start, last = time.monotonic(), ""
    tracker = session.sparkContext.statusTracker()
    while not done.is_set():
        line = progress_line(tracker)
        _tell(line if line != last else "", start)
        last = line
        done.wait(_EVERY_SECONDS)


def _tell(line: str, start: float) -> None:
    if line:
        print(f"{time.monotonic() - start:6.1f} s  {line}", file=sys.stderr, flush=True)


def progress_line(tracker: Any) -> str:
    """The active stages of a status tracker: how many of their tasks are done, and how many run."""
    stages = (tracker.getStageInfo(number) for number in tracker.getActiveStageIds())
    return "; ".join(
        f"stage {stage.stageId}: {stage.numCompletedTasks} of {stage.numTasks} tasks, {stage.numActiveTasks} running"
        for stage in stages
        if stage is not None
    )


# Sessions of a server


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
