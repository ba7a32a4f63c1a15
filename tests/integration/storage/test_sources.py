"""Files of others: which are found, and that they are read as they were listed or not at all."""

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib.errors import InvalidInputError, NotFoundError, RetryableError
from lakelib.rows.unite import TargetColumns
from lakelib.storage.filesystem import Storage
from lakelib.work.source_files import SourceFile, SourceRows, find_source_files
from lakelib.work.source_reader import SourceReader

FORMATS = ("parquet", "csv", "json")


def content(format: str, count: int, first: int = 10) -> bytes:
    numbers = range(first, first + count)
    match format:
        case "parquet":
            out = io.BytesIO()
            pq.write_table(pa.table({"id": numbers}), out, row_group_size=1 + count // 4)
            return out.getvalue()
        case "csv":
            return b"id\n" + b"".join(b"%d\n" % number for number in numbers)
        case _:
            return b"".join(b'{"id": %d}\n' % number for number in numbers)


def listed(storage: Storage, format: str) -> tuple[SourceReader, SourceFile]:
    """The one file, as it was listed and looked into, and what reads it."""
    reader = SourceReader.of(format, {"header": "true"} if format == "csv" else {}, None, (), TargetColumns())
    [found] = find_source_files(storage, storage.uri)
    file = reader.look_into(storage, found)
    assert file is not None
    return reader.united([file])[0], file


def count_rows(rows: Iterator[SourceRows]) -> int:
    return sum(each.batch.num_rows for each in rows)


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_stays_as_it_was_is_read(storage: Storage, format: str) -> None:
    storage.write_bytes("a", content(format, 10))
    reader, file = listed(storage, format)
    assert count_rows(reader.read(storage, file, None)) == 10


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("count", [10, 11, 400_000])
def test_a_file_that_was_replaced_since_it_was_listed_is_refused(storage: Storage, format: str, count: int) -> None:
    storage.write_bytes("a", content(format, 10))
    reader, file = listed(storage, format)
    storage.write_bytes("a", content(format, count, first=20))
    with pytest.raises(RetryableError, match=f"{storage.uri}/a has changed") as raised:
        count_rows(reader.read(storage, file, None))
    assert raised.value.kind == "source_changed"


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_replaced_while_it_is_read_is_refused(storage: Storage, format: str) -> None:
    storage.write_bytes("a", content(format, 1_500_000))
    reader, file = listed(storage, format)
    rows = reader.read(storage, file, None)
    next(rows)
    storage.write_bytes("a", content(format, 1_000))
    with pytest.raises(RetryableError, match="has changed") as raised:
        count_rows(rows)
    assert raised.value.kind == "source_changed"


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_gone_is_said_to_be(storage: Storage, format: str) -> None:
    storage.write_bytes("a", content(format, 10))
    reader, file = listed(storage, format)
    storage.delete_files(["a"])
    with pytest.raises(RetryableError, match="is gone") as raised:
        count_rows(reader.read(storage, file, None))
    assert raised.value.kind == "source_changed"


def test_a_text_that_grows_is_refused(storage: Storage) -> None:
    storage.write_bytes("a", b"id,amount\n1,12")
    reader, file = listed(storage, "csv")
    storage.write_bytes("a", b"id,amount\n1,12345\n")
    with pytest.raises(RetryableError, match="has changed"):
        count_rows(reader.read(storage, file, None))


def test_a_file_that_cannot_be_read_because_it_is_being_written_is_refused_as_changed(storage: Storage) -> None:
    storage.write_bytes("a", content("parquet", 10))
    [found] = find_source_files(storage, storage.uri)
    storage.write_bytes("a", content("parquet", 1_000)[:500])
    with pytest.raises(RetryableError) as raised:
        SourceReader.of("parquet", {}, None, (), TargetColumns()).look_into(storage, found)
    assert raised.value.kind == "source_changed"


# Which are found


def names_in(storage: Storage, path: str = "") -> list[str]:
    found = find_source_files(storage, f"{storage.uri}/{path}")
    return [file.uri.removeprefix(f"{storage.uri}/") for file in found]


def test_files_that_are_being_written_are_no_rows(storage: Storage) -> None:
    unfinished = ["b._COPYING_", "c.tmp", "d.csv.TMP", "e.part", "f.inprogress", "g.crdownload", "h~", ".i", "_j"]
    for name in ["a.csv", "tmp.csv", "x.tmp.csv", *unfinished]:
        storage.write_bytes(name, b"1")
    assert names_in(storage) == ["a.csv", "tmp.csv", "x.tmp.csv"]
    assert names_in(storage, "c.tmp") == ["c.tmp"]


@pytest.fixture
def linked(local_storage: Storage, tmp_path: Path) -> Storage:
    """A storage, whose folder has a file and a folder `inner` with one."""
    local_storage.write_bytes("a", b"1")
    local_storage.write_bytes("inner/b", b"1")
    return local_storage


def folder_of(storage: Storage) -> Path:
    return Path(storage.uri.removeprefix("file://"))


def test_linked_files_and_folders_are_read(linked: Storage, tmp_path: Path) -> None:
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (tmp_path / "elsewhere/deep/d").write_text("1")
    (folder_of(linked) / "c").symlink_to("a")
    (folder_of(linked) / "e").symlink_to(tmp_path / "elsewhere")
    assert names_in(linked) == ["a", "c", "e/deep/d", "inner/b"]


@pytest.mark.parametrize("path", ["", "{x,z}*"])
def test_a_link_that_leads_nowhere_is_named(linked: Storage, path: str) -> None:
    link = folder_of(linked) / "x"
    link.symlink_to(folder_of(linked) / "gone")
    with pytest.raises(NotFoundError, match=f"link {link} leads nowhere") as raised:
        names_in(linked, path)
    assert raised.value.kind == "dangling_link"


def test_a_link_that_leads_back_is_refused(linked: Storage) -> None:
    (folder_of(linked) / "inner/back").symlink_to(folder_of(linked))
    with pytest.raises(InvalidInputError, match="inner/back"):
        names_in(linked)


def test_what_looks_for_orphans_follows_no_link(linked: Storage, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/precious").write_text("1")
    (folder_of(linked) / "e").symlink_to(tmp_path / "elsewhere")
    assert sorted(entry.path for entry in linked.list_files()) == ["a", "e", "inner/b"]
