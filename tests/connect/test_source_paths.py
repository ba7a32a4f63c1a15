"""The contract of every way from a source to a table holds over Spark Connect: each case in one format."""

from itertools import cycle

import pytest

from tests.jobs.test_source_paths import (
    CASES,
    FORMATS,
    PATHS,
    Ingest,
    Place,
    check_ways,
    ingest,  # noqa: F401 - a fixture
    local,  # noqa: F401 - a fixture
    s3,  # noqa: F401 - a fixture
    test_a_source_that_changes_after_it_was_listed_is_for_another_try,  # noqa: F401 - what is imported is run
)

_TURNS = dict(zip(CASES, cycle(range(len(FORMATS)))))


@pytest.mark.parametrize("what", CASES)
def test_every_way_gives_the_same_rows_or_refuses_the_same(what: str, local: Place, ingest: Ingest) -> None:  # noqa: F811
    formats = CASES[what].formats
    check_ways(CASES[what], formats[_TURNS[what] % len(formats)], local, ingest, PATHS)


def test_a_source_on_s3_is_as_good_as_a_local_one(s3: Place, ingest: Ingest) -> None:  # noqa: F811
    check_ways(CASES["files of one kind"], "parquet", s3, ingest, PATHS)
