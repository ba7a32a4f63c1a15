"""What is promised of Spark is promised over Spark Connect: here `spark` is a session of a client, and the tests are
those of the classic session, taken from where they are written."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.jobs.conftest import new_table, run_job  # noqa: F401 - fixtures


@pytest.fixture(scope="module")
def spark(remote: str) -> Iterator[Any]:
    """A session of a client. Spark asks the environment which of its two kinds of columns are meant: as long as the
    module's tests run, they are not those of the classic session that this process may have, too."""
    from pyspark.sql.connect.session import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = SparkSession.builder.remote(remote).create()
        yield session
        session.stop()
