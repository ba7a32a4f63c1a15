import os
from pathlib import Path

import pytest

from lakelib.errors import InvalidInputError
from lakelib.storage.local_files import check_folder


def test_a_folder_that_is_there_or_can_be_made_is_fine(tmp_path: Path) -> None:
    check_folder(f"file://{tmp_path}")
    check_folder(f"file://{tmp_path}/a/b/c")
    assert list(tmp_path.iterdir()) == []


def test_a_remote_store_is_not_asked() -> None:
    check_folder("s3://no-such-bucket/warehouse")


@pytest.mark.parametrize("below", ["", "/a", "/a/b"])
def test_a_file_in_the_way_is_named(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match=f"{tmp_path}/file is no folder.*LAKE_WAREHOUSE"):
        check_folder(f"file://{tmp_path}/file{below}")


def test_a_link_that_leads_nowhere_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match="link is no folder"):
        check_folder(f"file://{tmp_path}/link")


def test_a_folder_without_permission_is_refused_and_one_to_read_only_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may do everything: what a user may not do is played."""
    denied = os.W_OK
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & denied)

    check_folder(f"file://{tmp_path}")
    with pytest.raises(InvalidInputError, match=f"may make nothing in {tmp_path}"):
        check_folder(f"file://{tmp_path}/new")

    denied = os.R_OK
    with pytest.raises(InvalidInputError, match="may not read it"):
        check_folder(f"file://{tmp_path}")
