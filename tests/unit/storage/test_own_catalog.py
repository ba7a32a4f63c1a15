"""Where a lake's own catalog is looked for, and what is found first."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from lakelib.errors import InvalidInputError
from lakelib.model.identity import Marker
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import Storage, open_storage
from lakelib.storage.marker import OwnCatalog, find_own_catalog, replace_marker
from lakelib.storage.paths import file_name, new_attempt_id

MARKER = Marker(
    lake_id=uuid4(), warehouse_id=uuid4(), epoch=1, token=uuid4(), uri="file:///x", folder=1, catalog="db:5432/lake"
)


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def warehouse(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path / "lake"), StorageSettings())


def add_table(warehouse: Storage) -> None:
    warehouse.write_bytes(f"shop/a-01/{file_name('delta', new_attempt_id(), 0)}", b"")


def test_a_new_lake_has_its_catalog_in_its_folder_and_looking_makes_nothing(warehouse: Storage, tmp_path: Path) -> None:
    own = OwnCatalog(folder=str(tmp_path / "lake/.catalog"), is_there=False, relative=".catalog")
    assert find_own_catalog(warehouse) == own
    assert not (tmp_path / "lake").exists()

    Path(own.folder).mkdir(parents=True)
    replace_marker(warehouse, replace(MARKER, embedded="../elsewhere"))
    assert find_own_catalog(warehouse) == replace(own, is_there=True)


def test_the_note_names_an_earlier_catalog_relative_to_the_warehouse(warehouse: Storage, tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    replace_marker(warehouse, replace(MARKER, embedded="../catalog"))

    found = find_own_catalog(warehouse)

    assert found == OwnCatalog(folder=str(tmp_path / "catalog"), is_there=True, relative="../catalog")


def test_the_pair_that_there_was_before_is_found_before_any_note(working_directory: Path) -> None:
    default = open_storage(".lake/warehouse", StorageSettings())
    (working_directory / ".lake/catalog").mkdir(parents=True)
    replace_marker(default, MARKER)

    assert find_own_catalog(default).folder == str(working_directory / ".lake/catalog")


def test_a_catalog_of_the_working_directory_is_taken_for_a_warehouse_with_tables_alone(
    warehouse: Storage, working_directory: Path
) -> None:
    (working_directory / ".lake/catalog").mkdir(parents=True)
    assert not find_own_catalog(warehouse).is_there

    add_table(warehouse)

    assert find_own_catalog(warehouse).folder == str(working_directory / ".lake/catalog")


def test_a_warehouse_whose_catalog_is_elsewhere_asks_for_it(warehouse: Storage) -> None:
    add_table(warehouse)
    with pytest.raises(InvalidInputError, match=r"there is none in .*/lake/\.catalog") as caught:
        find_own_catalog(warehouse)
    assert caught.value.kind == "catalog_not_named"

    replace_marker(warehouse, MARKER)
    with pytest.raises(InvalidInputError, match="db:5432/lake"):
        find_own_catalog(warehouse)


def test_a_remote_warehouse_holds_no_catalog(working_directory: Path) -> None:
    found = find_own_catalog(open_storage("s3://bucket/lake", StorageSettings()))
    assert found == OwnCatalog(folder=str(working_directory / ".lake/catalog"), is_there=False, relative=None)


def test_listings_leave_a_lakes_own_catalog_out(warehouse: Storage) -> None:
    add_table(warehouse)
    before = [entry.path for entry in warehouse.list_files()]
    warehouse.write_bytes(f".catalog/{file_name('delta', new_attempt_id(), 0)}", b"")
    assert [entry.path for entry in warehouse.list_files()] == before


def test_the_folder_around_a_lake_is_told_from_the_lake(tmp_path: Path) -> None:
    around, lake = tmp_path / "lake", open_storage(str(tmp_path / "lake/warehouse"), StorageSettings())
    add_table(lake)
    (around / "warehouse/.catalog").mkdir()
    with pytest.raises(InvalidInputError, match=f"the lake is in {around}/warehouse"):
        find_own_catalog(open_storage(str(around), StorageSettings()))
