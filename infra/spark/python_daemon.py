"""The process that forks Python workers for a Spark server: PySpark's own, but its workers find loaded what work on the
lake loads, and it ends when nobody has needed it for a while.

A server starts one for each session of Spark Connect, and keeps it for as long as it lives itself: one that stays would
have as many as it ever had sessions. Spark starts another one where it finds none.
"""

import gc
import importlib
import os
import signal
from types import FrameType

from pyspark import daemon

IDLE_SECONDS = "LAKE_PYTHON_IDLE_SECONDS"
_USUAL_IDLE_SECONDS = 60.0
_LOOKS = 5
"""It is looked so often, before it has been idle for long enough, whether it is."""
_LOADED_BY_WORKERS = ("lakelib.work.spark.tasks", "pandas", "pyarrow.dataset", "pyspark.worker")


def load() -> None:
    """What a session's workers would each load, all at the same time. They collect garbage after each task, and need
    not look at this."""
    for name in _LOADED_BY_WORKERS:
        importlib.import_module(name)
    gc.freeze()


def end_when_idle(seconds: float) -> None:
    """This process is told to end once it has had no children for so long. Its children are not."""
    looks = 0

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal looks
        looks = 0 if _has_children() else looks + 1
        if looks >= _LOOKS:
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGALRM, look)
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGALRM, signal.SIG_DFL))
    signal.setitimer(signal.ITIMER_REAL, seconds / _LOOKS, seconds / _LOOKS)


def _has_children() -> bool:
    """Those that have ended are not waited for: PySpark ignores their signal."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    load()
    end_when_idle(float(os.environ.get(IDLE_SECONDS) or _USUAL_IDLE_SECONDS))
    daemon.manager()
