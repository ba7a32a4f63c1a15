"""A lake that a released version has made is opened, migrated and read right, and its unfinished work goes on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakelib
from lakelib import Lake
from tests.conftest import drop_database
from tests.releases.released import Release, releases
from tests.releases.small_lake import told


@pytest.fixture(params=releases(), ids=lambda release: release.name)
def release(request: pytest.FixtureRequest) -> Release:
    found: Release = request.param
    return found


@pytest.fixture
def catalog_url(make_database: Callable[[], str]) -> Iterator[str]:
    """A database without a catalog."""
    url = make_database()
    yield url
    drop_database(url)


@pytest.fixture
def place(release: Release, catalog_url: str, tmp_path: Path) -> dict[str, Any]:
    """Where the release's lake is: arguments of `connect`."""
    warehouse = tmp_path / "warehouse"
    release.restore_lake(catalog_url, warehouse)
    return {"warehouse": warehouse.as_uri(), "catalog": catalog_url}


@pytest.fixture
def lake(place: dict[str, Any]) -> Iterator[Lake]:
    lakelib.migrate(**place)
    with lakelib.connect(**place) as lake:
        yield lake


def test_it_is_not_opened_before_it_is_migrated(place: dict[str, Any]) -> None:
    with pytest.raises(lakelib.InvalidInputError) as caught:
        lakelib.connect(**place)

    assert caught.value.kind == "catalog_too_old"


@pytest.mark.parametrize("post", [False, True])
def test_every_snapshot_tag_mark_and_commit_reads_as_before(
    release: Release, place: dict[str, Any], post: bool
) -> None:
    lakelib.migrate(**place, post=post)

    with lakelib.connect(**place) as lake:
        assert told(lake, release.told["commits"]) == release.told["read"]


def test_what_was_staged_is_published_or_refused_for_what_holds_it_back(release: Release, lake: Lake) -> None:
    def publish(what: str) -> str:
        try:
            return f"snapshot of {lake.staged(release.told['commits'][what]).publish().kind}"
        except lakelib.LakeError as error:
            return error.kind

    assert {what: publish(what) for what in release.told["commits"]} == {
        "staged upsert": "snapshot of upsert",
        "staged delete": "rows_added",
        "rejected": "commit_rejected",
        "taken over": "fenced",
        "next attempt": "snapshot of upsert",
        "staged overwrite": "snapshot of overwrite",
        "judged": "snapshot of upsert",
        "not judged": "verdict_missing",
    }


def test_work_that_was_done_is_not_done_again(lake: Lake) -> None:
    orders = lake.table("shop.orders")
    before = orders.head

    replayed = orders.upsert(orders.scan().to_arrow().slice(0, 0), idempotency_key=("loader", 4))

    assert (replayed.id, orders.head) == (4, before)


def test_rows_that_come_end_the_mark_of_their_partition(lake: Lake) -> None:
    orders = lake.table("shop.orders")
    assert [each.values for each in orders.done_partitions()] == [{"day": "mon"}]

    orders.upsert(pa.table({"id": [90], "day": ["tue"], "version": pa.array([1], pa.int32())}))
    assert [each.values for each in orders.done_partitions()] == [{"day": "mon"}]
    orders.upsert(pa.table({"id": [91], "day": ["mon"], "version": pa.array([1], pa.int32())}))

    assert orders.done_partitions() == []


def test_it_is_compacted_expired_and_vacuumed_without_another_answer(lake: Lake) -> None:
    orders = lake.table("shop.orders")
    before = sorted(map(str, orders.scan().to_arrow().to_pylist()))

    orders.compact(full=True)
    orders.expire(keep_last=1)
    lake.vacuum()

    assert sorted(map(str, orders.scan().to_arrow().to_pylist())) == before
