"""Whether a catalog may change a warehouse."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from lakelib.model.identity import Identity, Marker, Warehouse
from lakelib.plan.identity import find_difference, find_warehouse, named_warehouse, new_warehouse

PLACE = "file:///data/lake"
FOLDER = 17
UNBOUND = Identity(id=UUID(int=1), epoch=3, warehouses=())
WAREHOUSE = new_warehouse(UNBOUND, PLACE)
IDENTITY = replace(UNBOUND, warehouses=(Warehouse(id=uuid4(), uri="s3://b/l", epoch=1, token=uuid4()), WAREHOUSE))
MARKER = Marker(
    lake_id=IDENTITY.id,
    warehouse_id=WAREHOUSE.id,
    epoch=WAREHOUSE.epoch,
    token=WAREHOUSE.token,
    uri=PLACE,
    folder=FOLDER,
    catalog="db:5432/lake",
)


def kind(identity: Identity, marker: Marker | None, uri: str = PLACE, folder: int | None = FOLDER) -> str | None:
    found = find_difference(identity, marker, uri, folder)
    return None if found is None else found.kind


def test_catalog_and_warehouse_that_say_the_same_belong_together() -> None:
    assert kind(IDENTITY, MARKER) is None
    assert named_warehouse(MARKER) == WAREHOUSE


def test_a_new_warehouse_is_free_and_whoever_binds_it_says_the_same() -> None:
    assert kind(UNBOUND, None) is None
    assert kind(UNBOUND, MARKER) is None
    assert new_warehouse(UNBOUND, PLACE) == new_warehouse(UNBOUND, PLACE) != new_warehouse(UNBOUND, "file:///other")


@pytest.mark.parametrize("word", ["server", "database", "timeline", "copied", "identity", "a word of later"])
def test_a_catalog_on_another_server_only_reads(word: str) -> None:
    assert kind(replace(IDENTITY, differs=word), MARKER) == "identity_differs"
    assert kind(replace(UNBOUND, differs=word), None) == "identity_differs"


def test_a_newer_epoch_in_the_warehouse_disowns_the_catalog() -> None:
    assert kind(IDENTITY, replace(MARKER, epoch=4, token=uuid4())) == "lake_disowned"


@pytest.mark.parametrize(
    "marker",
    [
        None,
        replace(MARKER, lake_id=uuid4()),
        replace(MARKER, epoch=2),
        replace(MARKER, token=uuid4()),
        replace(MARKER, warehouse_id=uuid4()),
    ],
    ids=["lost", "another lake", "older", "not adopted", "at another's place"],
)
def test_a_note_that_says_something_else_is_a_difference(marker: Marker | None) -> None:
    assert kind(IDENTITY, marker) == "identity_differs"


def test_a_folder_that_was_moved_or_mounted_is_the_same_and_a_copy_is_not() -> None:
    assert kind(IDENTITY, MARKER, "file:///moved") is None
    assert kind(IDENTITY, MARKER, PLACE, 18) is None
    assert kind(IDENTITY, MARKER, "file:///copy", 18) == "identity_differs"
    assert kind(IDENTITY, replace(MARKER, folder=None), "s3://b/copy", None) == "identity_differs"


def test_a_warehouse_is_known_by_its_note_wherever_it_is() -> None:
    assert find_warehouse(IDENTITY, MARKER, "file:///moved") == WAREHOUSE
    assert find_warehouse(IDENTITY, None, PLACE) == WAREHOUSE
    assert find_warehouse(IDENTITY, None, "file:///moved") is None
    assert find_warehouse(IDENTITY, replace(MARKER, lake_id=uuid4()), PLACE) is None
