"""Read by every Python that tests start. Where Spark asks about sources in Python it forks a worker for each question:
what all of them would load is loaded before."""

import sys

if "pyspark.daemon" in sys.orig_argv:
    import gc

    import lakelib.spark  # noqa: F401 - workers are forks

    gc.freeze()
