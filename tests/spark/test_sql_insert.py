"""INSERT on Spark: the tests of `lake.sql`."""

# ruff: noqa: F403, F405 - what is imported is run
import pytest

from tests.acceptance.test_sql_insert import *
from tests.spark.on_spark import sql_on_spark

pytestmark = pytest.mark.usefixtures("sql_on_spark")
