"""Read by every Python that tests start. Programs that take longer to load than to run are borrowed. Where Spark asks
about sources in Python, or runs tasks, it forks a worker for each question or slot: what all of them would load is
loaded before."""

import os
import sys

if os.environ.get("LAKE_TEST_PROGRAMS") and sys.orig_argv[1:2] == ["-m"]:
    import borrowed

    if borrowed.is_borrowed(sys.orig_argv):
        borrowed.run()
if "pyspark.daemon" in sys.orig_argv:
    import gc

    import lakelib.spark  # noqa: F401 - workers are forks

    gc.freeze()
