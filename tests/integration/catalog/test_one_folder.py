"""A lake without a named catalog is one folder: found from anywhere, moved, mounted, copied."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lakelib
from lakelib.settings import Settings, StorageSettings
from lakelib.storage.filesystem import open_storage
from lakelib.storage.marker import MARKER_NAME, find_own_catalog

_ROOT = Path(__file__).parents[3]


def run(lake: Path | str, *steps: str, cwd: Path | None = None) -> Any:
    """What the last step of a program gives that works in a folder of its own."""
    program = [sys.executable, "-m", "tests.integration.catalog.folder_job", str(lake), *steps]
    unset = {name: text for name, text in os.environ.items() if not name.startswith("LAKE_")}
    paths = os.pathsep.join((str(_ROOT), os.environ["PYTHONPATH"]))
    kept = {name: text for name, text in os.environ.items() if name.startswith("LAKE_TEST_")}
    done = subprocess.run(
        program, cwd=cwd, env=unset | kept | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else None


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_the_catalog_is_in_the_folder_and_found_from_any_working_directory(tmp_path: Path, elsewhere: Path) -> None:
    run("lake", "make", cwd=tmp_path)

    assert run(tmp_path / "lake", "read", cwd=elsewhere) == [1, 2]
    assert run("../lake", "spark_settings", cwd=elsewhere) == [1, 2]
    assert list(elsewhere.iterdir()) == []
    assert stat.S_IMODE((tmp_path / "lake" / ".catalog").stat().st_mode) == 0o700
    assert not (tmp_path / "lake" / ".catalog" / "postmaster.pid").exists()


def test_a_lake_that_was_moved_opens_and_works_as_before(tmp_path: Path, elsewhere: Path) -> None:
    run(tmp_path / "lake", "make", "write")
    (tmp_path / "lake").rename(elsewhere / "moved")

    assert run(elsewhere / "moved", "write", "write", "vacuum", "read") == [1, 2, 3, 4, 5]
    assert not (tmp_path / "lake").exists()

    (elsewhere / "moved").rename(tmp_path / "again")
    assert run(tmp_path / "again", "write", "read") == [1, 2, 3, 4, 5, 6]
    places = run(tmp_path / "again", "locations")
    assert len(places) == 5
    assert all(place.startswith(f"file://{tmp_path}/again/shop/") for place in places)


def test_a_lake_that_is_seen_through_a_link_is_the_same(tmp_path: Path, elsewhere: Path) -> None:
    run(tmp_path / "lake", "make")
    (elsewhere / "link").symlink_to(tmp_path / "lake")

    assert run(elsewhere / "link", "write", "read") == [1, 2, 3]
    assert run(tmp_path / "lake", "write", "read") == [1, 2, 3, 4]


def test_a_copied_folder_is_read_and_adopted_and_never_touches_the_original(tmp_path: Path) -> None:
    original, copy = tmp_path / "lake", tmp_path / "copy"
    run(original, "make")
    subprocess.run(["cp", "-a", original, copy], check=True)
    run(original, "write")
    before = files(original)

    assert run(copy, "read") == [1, 2]
    assert run(copy, "write") == run(copy, "vacuum") == "identity_differs"
    assert run(copy, "adopt", "write", "vacuum", "read") == [1, 2, 3]

    assert files(original) == before
    assert run(original, "write", "vacuum", "read") == [1, 2, 3, 4]
    assert run(copy, "read") == [1, 2, 3]
    assert f"{original}" not in "".join(run(copy, "locations"))


def test_an_earlier_lake_of_a_working_directory_is_found_there_and_then_from_anywhere(
    tmp_path: Path, elsewhere: Path
) -> None:
    make_earlier_lake(tmp_path, tmp_path / ".lake/warehouse")

    assert run("", "write", "read", cwd=tmp_path) == [1, 2, 3]

    assert not (tmp_path / ".lake/warehouse/.catalog").exists()
    assert run(tmp_path / ".lake/warehouse", "write", "read", cwd=elsewhere) == [1, 2, 3, 4]
    (tmp_path / ".lake").rename(elsewhere / "moved")
    assert run(elsewhere / "moved/warehouse", "write", "read") == [1, 2, 3, 4, 5]


def test_an_earlier_lake_is_never_hidden_by_a_new_one(tmp_path: Path, elsewhere: Path) -> None:
    """The warehouse was named, and its catalog is in the working directory of that time."""
    make_earlier_lake(tmp_path, tmp_path / "warehouse")

    with pytest.raises(lakelib.InvalidInputError, match="no catalog is named that knows them") as caught:
        find_own_catalog(open_storage(str(tmp_path / "warehouse"), StorageSettings()))
    assert caught.value.kind == "catalog_not_named"

    assert run(tmp_path / "warehouse", "read", cwd=tmp_path) == [1, 2]
    assert run(tmp_path / "warehouse", "write", "read", cwd=elsewhere) == [1, 2, 3]
    assert run(elsewhere / "new", "make", "read", cwd=tmp_path) == [1, 2]
    assert (elsewhere / "new/.catalog").is_dir()


def make_earlier_lake(working_directory: Path, warehouse: Path) -> None:
    """As it was when a lake's own catalog was in the working directory, and knew nothing of identities."""
    run(warehouse, "make")
    catalog = working_directory / ".lake/catalog"
    catalog.parent.mkdir(exist_ok=True)
    shutil.move(warehouse / ".catalog", catalog)
    (warehouse / MARKER_NAME).unlink()
    run(catalog, "make_earlier")


def test_a_warehouse_whose_catalog_was_named_asks_for_it(catalog_url: str, tmp_path: Path) -> None:
    with lakelib.connect(tmp_path / "lake", catalog_url) as lake:
        lake.create_namespace("shop")
        lake.create_table("shop.a", "id bigint")

    with pytest.raises(lakelib.InvalidInputError, match="no catalog is named") as caught:
        lakelib.Lake(Settings(warehouse=str(tmp_path / "lake")))

    assert caught.value.kind == "catalog_not_named"
    assert "/test_" in str(caught.value)
    assert not (tmp_path / "lake/.catalog").exists()
