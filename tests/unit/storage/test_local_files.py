import os
import shutil
from pathlib import Path

import pytest

from lakelib.errors import InvalidInputError
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import Storage, open_storage


def test_folders_come_into_being_when_a_file_is_written(local_storage: Storage, tmp_path: Path) -> None:
    assert not (tmp_path / "storage").exists()
    local_storage.write_bytes("a/b/file", b"1")
    assert (tmp_path / "storage" / "a" / "b" / "file").read_bytes() == b"1"


def test_nothing_is_contacted_before_it_is_used() -> None:
    open_storage("hdfs://no.such.host:1/warehouse", StorageSettings())


def test_durable_means_file_and_folder_reach_the_disk(
    local_storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synchronised: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synchronised.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    local_storage.write_bytes("a/b/file", b"1")
    root = tmp_path / "storage"
    assert synchronised == [str(path) for path in (tmp_path, root, root / "a", root / "a/b/file", root / "a/b")]


def test_a_folder_in_the_place_of_a_file_is_refused(local_storage: Storage) -> None:
    local_storage.write_bytes("file", b"1")
    with pytest.raises(InvalidInputError, match="file/below"):
        local_storage.write_bytes("file/below", b"1")


def test_a_file_that_cannot_be_deleted_is_returned(local_storage: Storage) -> None:
    local_storage.write_bytes("folder/file", b"1")
    (failed,) = local_storage.delete_files(["folder", "folder/file"])
    assert failed.path == "folder"
    assert not local_storage.exists("folder/file")


def test_folders_that_vanish_during_a_listing_are_left_out(local_storage: Storage, tmp_path: Path) -> None:
    for number in range(3):
        local_storage.write_bytes(f"folder{number}/file", b"")
    entries = local_storage.list_files()
    first = next(entries)
    for folder in (tmp_path / "storage").iterdir():
        shutil.rmtree(folder)
    assert first.size_bytes == 0
    assert list(entries) == []


def test_settings_complete_a_path_without_a_scheme() -> None:
    storage = open_storage("/warehouse", StorageSettings(default_fs="s3a://bucket"))
    assert storage.uri == "s3://bucket/warehouse"
    assert storage.at("/elsewhere").uri == "s3://bucket/elsewhere"
