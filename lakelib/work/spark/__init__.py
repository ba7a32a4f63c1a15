"""Spark distributes the kernels: the tasks that it runs, and the data frames that they make and take. Needs pyspark."""

try:
    import pyspark  # noqa: F401 - only to say what is missing
except ImportError as error:
    raise ImportError(
        'lakelib needs PySpark to work with Spark, and it is not installed. Run: pip install "lakelib[spark]"',
        name="pyspark",
    ) from error
