"""What every store promises, on local files and on S3 over HTTP."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakelib.errors import CorruptionError, InvalidInputError, NotFoundError
from lakelib.storage.filesystem import Storage

ODD_PATHS = ["dt=a%2Fb/x y.parquet", "é/ü&=+.bin", "%41/a", "a,b/c=d/e#f?g"]


def test_what_is_written_is_read_back(storage: Storage) -> None:
    storage.write_bytes("a/b/file", b"content")
    assert storage.read_bytes("a/b/file") == b"content"


@pytest.mark.parametrize("path", ODD_PATHS)
def test_paths_are_taken_literally(storage: Storage, path: str) -> None:
    storage.write_bytes(path, b"1")
    assert storage.read_bytes(path) == b"1"
    assert [entry.path for entry in storage.list_files()] == [path]


def test_a_file_larger_than_one_part_is_streamed(storage: Storage) -> None:
    part = bytes(range(256)) * 4096
    with storage.open_output("large") as stream:
        for _ in range(25):
            stream.write(part)
    assert storage.size("large") == 25 * len(part)
    with storage.open_input("large") as file:
        assert file.read_at(256, 24 * len(part)) == part[:256]


def test_writing_again_replaces_the_file(storage: Storage) -> None:
    storage.write_bytes("file", b"a long content")
    storage.write_bytes("file", b"short")
    assert storage.read_bytes("file") == b"short"


def test_names_of_compressed_files_do_not_compress_them(storage: Storage) -> None:
    storage.write_bytes("file.gz", b"plain")
    assert storage.read_bytes("file.gz") == b"plain"


def test_complete_uris_of_the_same_store_name_the_same_file(storage: Storage) -> None:
    storage.write_bytes("a/file", b"1")
    assert storage.read_bytes(storage.uri_of("a/file")) == b"1"
    assert storage.at(storage.uri_of("a")).read_bytes("file") == b"1"


@pytest.mark.parametrize("path", ["hdfs://host/file", "../file", "a/../../file"])
def test_files_outside_the_store_are_refused(storage: Storage, path: str) -> None:
    with pytest.raises(InvalidInputError, match="not in the store"):
        storage.exists(path)


def test_a_missing_file_is_not_found(storage: Storage) -> None:
    with pytest.raises(NotFoundError, match=r"There is no file .*/gone"):
        storage.read_bytes("gone")
    with pytest.raises(NotFoundError, match=r"There is no file .*/gone"):
        storage.size("gone")


def test_a_missing_file_that_the_catalog_names_is_corruption(storage: Storage) -> None:
    with pytest.raises(CorruptionError, match=r"The catalog names the file .*/gone") as raised:
        storage.open_input("gone", named_by_catalog=True)
    assert raised.value.kind == "missing_file"
    with pytest.raises(CorruptionError):
        storage.size("gone", named_by_catalog=True)


def test_only_files_exist(storage: Storage) -> None:
    storage.write_bytes("folder/file", b"")
    assert storage.exists("folder/file")
    assert not storage.exists("folder")
    assert not storage.exists("folder/other")


def test_listing_gives_every_file_below_a_folder_and_no_other(storage: Storage) -> None:
    for path in ("a/1", "a/b/2", "ab/3", "4"):
        storage.write_bytes(path, path.encode())
    assert {entry.path for entry in storage.list_files("a")} == {"a/1", "a/b/2"}
    assert {entry.path: entry.size_bytes for entry in storage.list_files()} == {"a/1": 3, "a/b/2": 5, "ab/3": 4, "4": 1}
    assert list(storage.list_files("nothing")) == []


def test_listing_gives_times_in_utc(storage: Storage) -> None:
    storage.write_bytes("file", b"")
    (entry,) = storage.list_files()
    assert entry.modified_at.tzinfo is UTC
    assert abs(datetime.now(UTC) - entry.modified_at) < timedelta(minutes=1)


def test_listing_crosses_pages(storage: Storage) -> None:
    _write_many(storage, 1100)
    assert len({entry.path for entry in storage.list_files("many")}) == 1100


def test_deleting_takes_more_files_than_one_request(storage: Storage) -> None:
    _write_many(storage, 1100)
    storage.write_bytes("kept", b"")
    assert storage.delete_files(f"many/{number}" for number in range(1100)) == ()
    assert [entry.path for entry in storage.list_files()] == ["kept"]


def test_deleting_missing_files_is_fine(storage: Storage) -> None:
    assert storage.delete_files(["gone", storage.uri_of("gone too")]) == ()


def test_deleting_nothing_is_fine(storage: Storage) -> None:
    assert storage.delete_files([]) == ()


def test_storage_travels_by_pickle(storage: Storage) -> None:
    storage.write_bytes("file", b"1")
    travelled = pickle.loads(pickle.dumps(storage))
    assert travelled == storage
    assert travelled.read_bytes("file") == b"1"


def test_threads_share_a_storage(storage: Storage) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: storage.write_bytes(f"f{number % 3}/{number}", str(number).encode()), range(40)))
        read = pool.map(lambda number: storage.read_bytes(f"f{number % 3}/{number}"), range(40))
        assert list(read) == [str(number).encode() for number in range(40)]


def test_a_written_file_can_be_made_durable(storage: Storage) -> None:
    storage.write_bytes("a/file", b"1")
    storage.make_durable("a/file")
    assert storage.read_bytes("a/file") == b"1"


def test_aborting_uploads_touches_no_finished_file(storage: Storage) -> None:
    storage.write_bytes("file", b"1")
    assert storage.abort_uploads("", datetime.now(UTC) + timedelta(days=1)) == 0
    assert storage.read_bytes("file") == b"1"


def _write_many(storage: Storage, count: int) -> None:
    storage.write_bytes("many/0", b"")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: _write(storage, f"many/{number}"), range(count)))


def _write(storage: Storage, path: str) -> None:
    storage.open_output(path).close()


def test_a_file_replaced_at_once_is_the_new_one(storage: Storage) -> None:
    storage.replace_bytes("folder/file", b"one")
    storage.replace_bytes("folder/file", b"two")
    assert storage.read_bytes("folder/file") == b"two"
    assert [entry.path for entry in storage.list_files()] == ["folder/file"]


def test_of_many_who_create_a_file_one_does(storage: Storage) -> None:
    """On S3 as far as the service knows conditions; the one here does not."""
    contents = [str(number).encode() * 1000 for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda content: storage.create_bytes("file", content), contents))
    made = storage.read_bytes("file")
    assert made in contents
    if storage.is_local:
        assert not storage.create_bytes("file", b"later")
        assert storage.read_bytes("file") == made
        assert [entry.path for entry in storage.list_files()] == ["file"]


def test_files_are_made_in_order_up_to_one_that_is_there(storage: Storage) -> None:
    """On S3 as far as the service knows conditions; the one here does not."""
    files = [(f"log/{number}", str(number).encode()) for number in range(5)]
    assert storage.create_in_order(files[:2]) == 2
    if storage.is_local:
        assert storage.create_in_order([files[2], (files[1][0], b"other"), files[3]]) == 1
        assert {entry.path: storage.read_bytes(entry.path) for entry in storage.list_files()} == dict(files[:3])


def test_a_root_that_has_moved_holds_what_was_below_it(storage: Storage) -> None:
    moved = replace(storage, home="file:///before/lake")
    storage.write_bytes("shop/orders-1/file", b"1")

    assert moved.at("file:///before/lake/shop/orders-1").read_bytes("file") == b"1"
    assert moved.location_of("shop/orders-2") == "file:///before/lake/shop/orders-2"
    assert moved.place_of("file:///before/lake/shop/t") == f"{storage.uri}/shop/t"
    assert moved.place_of("file:///before/lake2/shop/t") == "file:///before/lake2/shop/t"
    assert moved.holds("file:///before/lake/shop/t")
    assert not moved.holds("file:///before/lake2/shop/t")
    assert storage.location_of("t") == f"{storage.uri}/t"
