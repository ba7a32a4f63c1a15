"""TPC-H's queries over Spark Connect."""

# ruff: noqa: F401 - what is imported is run
from tests.spark.test_tpch import database, lake, plain, state, test_a_query_gives_what_it_gives_over_plain_parquet
