"""The Spark session of a job: the one that spark-submit prepares, one on a Spark Connect server, or one of the job's
own. What it makes of dates and moments is the same on every machine: its time zone is UTC.

Spark is loaded when a session is opened: jobs that need none do not wait for it.
"""

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakelib.pipeline.arguments import Surroundings
from lakelib.pipeline.remote import connected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULT_MASTER = "local[*]"
_REMOTE = "SPARK_REMOTE"
PREPARED = "PYSPARK_GATEWAY_PORT"
"""What spark-submit sets: the master is its to say."""
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
