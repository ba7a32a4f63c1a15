import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib.errors import InvalidInputError
from lakelib.model.files import PartitionKey
from lakelib.model.predicate import Raw
from lakelib.model.schema import Column
from lakelib.model.sortable import encode
from lakelib.storage.paths import (
    MAX_SEGMENT_BYTES,
    attempt_id,
    complete_uri,
    file_name,
    is_own_file,
    join_uri,
    leads_back,
    new_attempt_id,
    partition_path,
    split_uri,
)

DAY_MICROS = 86_400_000_000


def path_of(type_text: str, raw: Raw | None, name: str = "c") -> str:
    return partition_path([Column(id=1, name=name, type=type_text)], (None if raw is None else encode(type_text, raw),))


@pytest.mark.parametrize(
    ("type_text", "raw", "path"),
    [
        ("string", "shop", "c=shop"),
        ("string", "", "c="),
        ("string", None, "c=__HIVE_DEFAULT_PARTITION__"),
        ("string", "__HIVE_DEFAULT_PARTITION__", "c=%5F_HIVE_DEFAULT_PARTITION__"),
        ("string", "a/b", "c=a%2Fb"),
        ("string", "a=b,c %41\n", "c=a%3Db%2Cc%20%2541%0A"),
        ("string", "é", "c=%C3%A9"),
        ("string", "..", "c=.."),
        ("int", -7, "c=-7"),
        ("boolean", True, "c=true"),
        ("boolean", False, "c=false"),
        ("binary", b"\x00\xff", "c=00ff"),
        ("decimal(10,2)", -5, "c=-0.05"),
        ("decimal(10,2)", 123456, "c=1234.56"),
        ("decimal(10,0)", 12, "c=12"),
        ("date", 0, "c=1970-01-01"),
        ("date", 20_775, "c=2026-11-18"),
        ("date", -719_529, "c=-0001-12-31"),
        ("date", 2_932_897, "c=%2B10000-01-01"),
        ("timestamp", 20_775 * DAY_MICROS + 1, "c=2026-11-18T00%3A00%3A00.000001Z"),
        ("timestamp_ntz", -1_000_000, "c=1969-12-31T23%3A59%3A59"),
    ],
)
def test_partition_values_are_readable_and_safe(type_text: str, raw: Raw | None, path: str) -> None:
    assert path_of(type_text, raw) == path


def test_partition_columns_are_folders_in_order() -> None:
    columns = [Column(id=1, name="dt", type="date"), Column(id=4, name="region", type="string")]
    assert partition_path(columns, (encode("date", 20_775), encode("string", "eu"))) == "dt=2026-11-18/region=eu"


def test_a_table_without_partitions_has_an_empty_path() -> None:
    assert partition_path([], ()) == ""


def test_names_that_hide_folders_are_escaped() -> None:
    assert path_of("int", 1, name="_c") == "%5Fc=1"
    assert path_of("int", 1, name=".c") == "%2Ec=1"


@given(st.dates())
def test_dates_are_iso(date: object) -> None:
    ordinal = date.toordinal() - 719_163  # type: ignore[attr-defined]
    assert path_of("date", ordinal) == f"c={date}"


@given(
    st.lists(
        st.one_of(st.none(), st.text(), st.text(alphabet="é%_~=", min_size=20, max_size=200)), min_size=1, max_size=2
    ),
    st.lists(
        st.one_of(st.none(), st.text(), st.text(alphabet="é%_~=", min_size=20, max_size=200)), min_size=1, max_size=2
    ),
)
def test_distinct_keys_have_distinct_paths(left: list[str | None], right: list[str | None]) -> None:
    assert (_path(left) == _path(right)) == (left == right)


@given(st.text(min_size=30))
def test_segments_are_short_and_plain(text: str) -> None:
    path = path_of("string", text * 10)
    assert path.isascii()
    assert "/" not in path
    assert len(path) <= MAX_SEGMENT_BYTES


def test_long_values_with_one_beginning_differ() -> None:
    assert path_of("string", "x" * 300 + "a") != path_of("string", "x" * 300 + "b")


def test_file_names_sort_by_time_and_number() -> None:
    early, late = attempt_id(1_000, b"\xff" * 10), attempt_id(2_000, b"\x00" * 10)
    names = [file_name("delta", early, 2), file_name("delta", early, 10), file_name("delta", late, 0)]
    assert names == sorted(names)


def test_attempts_are_unique() -> None:
    assert len({new_attempt_id() for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    ("text", "default_fs", "uri"),
    [
        ("s3://bucket/a//b/", None, "s3://bucket/a/b"),
        ("s3a://bucket/a", None, "s3://bucket/a"),
        ("S3N://bucket", None, "s3://bucket"),
        ("s3://bucket/dt=a%2Fb", None, "s3://bucket/dt=a%2Fb"),
        ("file:///a/b/", None, "file:///a/b"),
        ("file:/a/b", None, "file:///a/b"),
        ("file://localhost/a", None, "file:///a"),
        ("hdfs://host:8020/", None, "hdfs://host:8020"),
        ("/a/../b", None, "file:///b"),
        ("/a", "hdfs://host:8020", "hdfs://host:8020/a"),
        ("./a", "s3a://bucket/root", "s3://bucket/root/a"),
        ("s3://other/a", "hdfs://host", "s3://other/a"),
        ("/a", "file:///", "file:///a"),
    ],
)
def test_locations_are_completed(text: str, default_fs: str | None, uri: str) -> None:
    assert complete_uri(text, default_fs) == uri
    assert complete_uri(uri) == uri


def test_relative_paths_start_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert complete_uri("./.lake/warehouse") == f"file://{os.getcwd()}/.lake/warehouse"


@pytest.mark.parametrize("text", ["ftp://host/a", "s3:///a", "s3:/a", "file://host/a", "", " "])
def test_wrong_locations_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        complete_uri(text)


def test_uris_are_split_and_joined() -> None:
    assert split_uri("s3://bucket/a/b") == ("s3", "bucket", "/a/b")
    assert split_uri("s3://bucket") == ("s3", "bucket", "")
    assert join_uri("file:///", "a") == "file:///a"
    assert join_uri("file:///a", "") == "file:///a"


def _path(texts: list[str | None]) -> str:
    key: PartitionKey = tuple(None if text is None else encode("string", text) for text in texts)
    return partition_path([Column(id=at, name=f"c{at}", type="string") for at in range(len(texts))], key)


@pytest.mark.parametrize("kind", ["append", "upsert", "overwrite", "delete", "compact"])
def test_files_of_writers_are_told_from_all_others_by_name(kind: str) -> None:
    name = file_name(kind, new_attempt_id(), 7)
    assert is_own_file(name)
    assert is_own_file(f"dt=2026-11-18/{name}")
    assert is_own_file(file_name(kind, new_attempt_id(), 123_456))
    for other in (
        f"_{name}",
        f".{name}",
        f"{name}.crc",
        f"{name}/part",
        name.replace("-", "_"),
        name.upper(),
        "_SUCCESS",
    ):
        assert not is_own_file(other)


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("dt=2026-11-18/upsert.parquet", True),
        ("a..b/..c/upsert.parquet", True),
        ("s3:/upsert.parquet", True),
        ("s3://lake/shop/orders/upsert.parquet", False),
        ("../upsert.parquet", False),
        ("dt=1/../../upsert.parquet", False),
    ],
)
def test_a_listed_path_that_would_be_taken_for_another_file_is_told(listed: str, expected: bool) -> None:
    assert leads_back(listed) == expected


@pytest.mark.parametrize(
    "text",
    [
        "s3://key:hidden@bucket/in",
        "s3a://key:hidden/more@bucket/in",
        "gs://key:hidden@bucket/in",
        "hdfs://ann:hidden@host:8020/in",
        "file://ann:hidden@host/in",
        "postgresql://ann:hid/hidden@host/in",
        "s3:/key:hidden@bucket/in",
    ],
)
def test_credentials_in_a_location_are_refused_and_not_told(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        complete_uri(text)

    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("text", ["s3://bucket/a:b@c", "hdfs://ann@host:8020/in", "s3://arn:aws:s3:eu:1:point/in"])
def test_signs_of_credentials_elsewhere_are_part_of_a_location(text: str) -> None:
    assert complete_uri(text) == text


def test_files_in_a_lakes_own_catalog_are_never_files_of_tables() -> None:
    name = file_name("delta", new_attempt_id(), 0)
    assert is_own_file(f"dt=2026-11-18/{name}")
    assert not is_own_file(f".catalog/{name}")
    assert not is_own_file(f"shop/.catalog/base/{name}")
