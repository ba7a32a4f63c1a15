"""What is promised of merge engines on Spark is promised over Spark Connect, streams included."""

import pytest

from tests.acceptance.conftest import engine, lake, new_table, storage, storage_kind  # noqa: F401 - fixtures
from tests.acceptance.test_merge_engines import test_spark_reads_writes_and_compacts_the_same  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
