"""What Spark starts Python workers with in tests: its own daemon, whose workers collect garbage once in earnest.

A worker collects garbage after each task, which takes longer than a small task itself: it looks at all that was
imported. Here it looks at nothing twice.
"""

import gc

from pyspark.daemon import manager

_collect = gc.collect


def _collect_and_keep(generation: int = 2) -> int:
    found = _collect(generation)
    gc.freeze()
    return found


if __name__ == "__main__":
    gc.collect = _collect_and_keep
    manager()
