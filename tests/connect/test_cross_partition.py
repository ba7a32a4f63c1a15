"""What is promised of keys across partitions is promised over Spark Connect."""

from tests.spark.conftest import lake, new_table  # noqa: F401 - fixtures
from tests.spark.test_cross_partition import test_rows_that_move_leave_by_tasks  # noqa: F401
