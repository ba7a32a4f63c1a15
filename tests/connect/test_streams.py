"""What is promised of streams is promised over Spark Connect: batches are written by a process of the server's."""

import pytest

from tests.spark.conftest import lake, new_table  # noqa: F401 - fixtures
from tests.spark.test_stream_read import (  # noqa: F401
    table,
    test_a_table_that_is_not_there_is_no_stream,
    test_what_a_stream_cannot_be_told_is_said_at_once,
)
from tests.spark.test_stream_write import (  # noqa: F401
    copy,
    orders,
    streams,
    test_a_batch_that_its_gate_rejects_is_not_visible,
    test_a_batch_that_runs_again_is_known,
    test_a_complete_result_takes_the_place_of_the_one_before,
    test_a_copy_of_a_table_ends_equal,
    test_rows_that_do_not_fit_are_told_at_once,
    test_what_a_writer_cannot_be_told_is_said_at_once,
)

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
