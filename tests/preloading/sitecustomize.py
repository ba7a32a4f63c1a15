"""Read by every Python that tests start. Where Spark asks about sources in Python it forks a worker for each question:
what all of them would load is loaded before. Programs that take longer to load than to run are borrowed."""

import os
import sys

if "pyspark.daemon" in sys.orig_argv:
    import gc

    import lakelib.spark  # noqa: F401 - workers are forks

    gc.freeze()
elif os.environ.get("LAKE_TEST_PROGRAMS") and sys.orig_argv[1:2] == ["-m"]:
    import borrowed

    if borrowed.is_borrowed(sys.orig_argv):
        borrowed.run()
