"""Changes and views are read over Spark Connect, too."""

# ruff: noqa: F401 - what is imported is run
from tests.spark.conftest import lake, new_name, new_table
from tests.spark.test_changes import (
    table,
    test_a_diff_goes_both_ways,
    test_a_frame_has_the_changes,
    test_no_changes_are_an_empty_frame,
    test_the_format_reads_the_views_of_a_scan,
)
