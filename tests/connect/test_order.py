"""Of the rows of a key the last one in the frame wins, over Spark Connect too."""

# ruff: noqa: F401 - what is imported is run
from tests.spark.conftest import lake, new_name, new_table, with_settings
from tests.spark.test_order import (
    cached,
    test_a_cached_frame_keeps_its_order,
    test_a_sorted_frame_keeps_its_order,
    test_every_distribution_keeps_it,
    test_every_write_and_every_keyed_table_keeps_it,
)
