"""What is promised of the data frame's writer is promised over Spark Connect."""

from tests.spark.conftest import lake, new_name  # noqa: F401 - fixtures
from tests.spark.test_save import test_a_frame_is_inserted_by_position  # noqa: F401
