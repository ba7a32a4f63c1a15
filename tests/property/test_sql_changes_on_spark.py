"""UPDATE, DELETE and MERGE on Spark leave what they leave in DuckDB's own tables: the statements of `test_sql_changes`.

LAKE_SQL_SPARK_STATEMENTS says how many, and more; LAKE_SQL_SEED repeats a run.
"""

import random

import duckdb
import pytest

from lakelib import Lake
from tests.property.test_sql_changes import compare, lake, plain  # noqa: F401 - fixtures
from tests.property.test_sql_on_spark import STATEMENTS
from tests.spark.on_spark import sql_on_spark  # noqa: F401 - a fixture


@pytest.mark.usefixtures("sql_on_spark")
def test_a_change_leaves_what_duckdb_leaves_in_its_own_tables(
    lake: Lake,  # noqa: F811 - a fixture
    plain: duckdb.DuckDBPyConnection,  # noqa: F811 - a fixture
    chance: random.Random,
) -> None:
    compare(lake, plain, chance, max(8, STATEMENTS // 3))
