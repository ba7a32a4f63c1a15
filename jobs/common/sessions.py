"""The Spark session of a job: the one that spark-submit or the environment prepares, or one of the job's own. What it
makes of dates and moments is the same on every machine: its time zone is UTC.

Spark is loaded when a session is opened: jobs that need none do not wait for it.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULT_MASTER = "local[*]"
_PREPARED_BY = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
"""What spark-submit, and who wants Spark Connect, set: the master is theirs to say."""
_EVERY_SECONDS = 2.0


@contextmanager
def opened_session(name: str, master: str | None, given: "SparkSession | None") -> Iterator["SparkSession"]:
    """Stops the session at the end, unless it was given."""
    if given is not None:
        yield given
        return
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    if not any(variable in os.environ for variable in _PREPARED_BY):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master or _DEFAULT_MASTER)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def told_progress(session: "SparkSession", wanted: bool | None) -> Iterator[None]:
    """Meanwhile tells on stderr now and then how far Spark's stages are. Spark Connect does not say."""
    from lakelib.distribute.sessions import is_connect

    if is_connect(session) or not (sys.stderr.isatty() if wanted is None else wanted):
        yield
        return
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
        if line != last and line:
            print(f"{time.monotonic() - start:6.1f} s  {line}", file=sys.stderr, flush=True)
        last = line
        done.wait(_EVERY_SECONDS)


def progress_line(tracker: Any) -> str:
    """The active stages of a status tracker: how many of their tasks are done, and how many run."""
    stages = (tracker.getStageInfo(number) for number in tracker.getActiveStageIds())
    return "; ".join(
        f"stage {stage.stageId}: {stage.numCompletedTasks} of {stage.numTasks} tasks, {stage.numActiveTasks} running"
        for stage in stages
        if stage is not None
    )
