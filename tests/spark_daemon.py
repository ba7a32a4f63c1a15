"""What Spark starts Python workers with in tests: its own daemon, whose workers find loaded what all of them need, and
collect garbage once in earnest.

A worker collects garbage after each task, which takes longer than a small task itself: it looks at all that was
imported. Here it looks at nothing twice. The daemon ends when nobody has needed it for a while, as that of a server.
"""

import gc

from pyspark.daemon import manager

from infra.spark.python_daemon import end_when_idle, load

_IDLE_SECONDS = 60.0
_collect = gc.collect


def _collect_and_keep(generation: int = 2) -> int:
    found = _collect(generation)
    gc.freeze()
    return found


if __name__ == "__main__":
    load()
    gc.collect = _collect_and_keep
    end_when_idle(_IDLE_SECONDS)
    manager()
