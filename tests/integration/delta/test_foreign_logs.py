"""Logs that others have written are read: actions, checkpoints, what is so after all versions."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakelib import CorruptionError
from lakelib.interop.delta.actions import CommitInfo, LogState, Metadata, Protocol, from_json, to_json
from lakelib.interop.delta.log import list_log, read_checkpoint, read_last_checkpoint, read_version
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import Storage, open_storage


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Storage:
    """By delta-rs: appends into partitions, a delete, an application's progress, a checkpoint."""
    folder = tmp_path_factory.mktemp("foreign")
    for number in range(3):
        rows = pa.table({"id": [number, 10 + number], "day": ["mon", None]})
        write_deltalake(folder, rows, partition_by=["day"], mode="append")
    table = DeltaTable(folder)
    table.delete("id = 11")
    table.create_checkpoint()
    write_deltalake(folder, pa.table({"id": [9], "day": ["tue/wed"]}), mode="append")
    return open_storage(str(folder), StorageSettings())


def test_each_line_of_another_writer_comes_back_as_it_was(written: Storage) -> None:
    for version in list_log(written).versions:
        content = written.read_bytes(f"_delta_log/{version:020d}.json")

        again = [json.loads(line) for line in to_json(from_json(content, "it")).splitlines()]

        assert again == [_without_nulls(json.loads(line)) for line in content.splitlines()]


def test_a_checkpoint_says_what_the_versions_before_it_do(written: Storage) -> None:
    listing = list_log(written)
    replayed = LogState()
    for version in range(4):
        replayed.apply(read_version(written, version) or ())

    told = LogState().apply(read_checkpoint(written, listing.checkpoints[3]))

    assert read_last_checkpoint(written) == 3 == listing.newest_checkpoint
    assert set(told.files) == set(replayed.files)
    assert {path: add.partition_values for path, add in told.files.items()} == {
        path: add.partition_values for path, add in replayed.files.items()
    }
    assert (told.protocol, told.metadata) == (replayed.protocol, replayed.metadata)


def test_what_is_so_in_the_end_is_what_the_writer_says(written: Storage) -> None:
    state = LogState()
    for version in list_log(written).versions:
        state.apply(read_version(written, version) or ())

    table = DeltaTable(written.uri)
    assert isinstance(state.protocol, Protocol)
    assert isinstance(state.metadata, Metadata)
    assert isinstance(state.commit, CommitInfo)
    assert state.metadata.id == str(table.metadata().id)
    assert state.metadata.partition_columns == ("day",)
    assert len(state.files) == len(table.file_uris())


def test_what_is_no_version_is_refused_by_its_place() -> None:
    with pytest.raises(CorruptionError, match="here is not a version") as caught:
        from_json(b'{"add":{"path":"a","size":1,"modificationTi', "here")

    assert caught.value.kind == "unreadable_delta_log"


def _without_nulls(action: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    ((name, body),) = action.items()
    return {name: {key: value for key, value in body.items() if value is not None}}
