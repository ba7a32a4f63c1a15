"""A real Hive metastore learns what a table has, and what has changed; where it is away, nothing else suffers."""

import socket
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, RetryableError, Table
from lakelib.interop.hive.metastore import Metastore, parse_address
from lakelib.pipeline import following
from lakelib.specs.table_spec import load_spec
from tests.hive_service import ask_spark

DAY, NEXT = date(2026, 11, 18), date(2026, 11, 19)


def _rows(*numbers: int, day: date | None = DAY, place: str | None = "a/b c") -> pa.Table:
    return pa.table(
        {
            "Order_id": pa.array(numbers, pa.int64()),
            "dt": pa.array([day] * len(numbers), pa.date32()),
            "place": pa.array([place] * len(numbers), pa.string()),
            "amount": pa.array([None if number % 2 else {"net": [number]} for number in numbers]),
        }
    )


def _table(lake: Lake, name: str, **definition: Any) -> Table:
    columns = "Order_id BIGINT, dt DATE, place STRING, amount STRUCT<net: ARRAY<BIGINT>>"
    return lake.create_table(f"shop.{name}", columns, partition_by=["dt", "place"], **definition)


def _parameters(address: str, name: str, *values: str) -> dict[str, str]:
    with Metastore(parse_address(address)) as client:
        found = client.find_partition("shop", name, values)
    return {} if found is None else dict(found.parameters)


def test_spark_finds_the_table_its_partitions_and_what_is_known_of_them(
    lake: Lake, metastore: str, tmp_path: Path
) -> None:
    orders = _table(lake, "sold")
    orders.append(_rows(1, 2))
    orders.append(_rows(3, day=None, place="x=%1"))
    orders.append(_rows(4, day=NEXT, place="ü"))
    orders.mark_done({"dt": DAY, "place": "a/b c"})
    first = orders.report_hive(metastore)
    again = orders.report_hive(metastore)
    assert (first.is_new, len(first.told), first.failed) == (True, 3, ())
    assert (again.is_new, again.told, again.partitions) == (False, (), 3)
    head = orders.history()[-1]
    queries = [
        "SHOW PARTITIONS shop.sold",
        "SELECT order_id, amount.net, dt, place FROM shop.sold ORDER BY order_id",
        "DESCRIBE EXTENDED shop.sold PARTITION (dt = '2026-11-18', place = 'a/b c')",
        "SHOW TBLPROPERTIES shop.sold",
        "SELECT count(*) FROM shop.sold WHERE dt = '2026-11-19'",
    ]
    partitions, rows, described, properties, counted = ask_spark(metastore, tmp_path, queries)
    assert len(partitions) == 3
    assert ["dt=2026-11-18/place=a%2Fb c"] in partitions
    assert rows == [
        [1, None, "2026-11-18", "a/b c"],
        [2, [2], "2026-11-18", "a/b c"],
        [3, None, None, "x=%1"],
        [4, [4], "2026-11-19", "ü"],
    ]
    told = str(described)
    for each in (f"lakelib.last_commit={head.commit_id}", "lakelib.snapshot=1", "lakelib.plain_reads=exact"):
        assert each in told
    assert "lakelib.done_snapshot=3" in told
    assert "2 rows" in told
    assert ["lakelib.table", "shop.sold"] in properties
    assert counted == [[1]]


def test_only_what_has_changed_is_told_and_what_is_gone_is_taken_out(lake: Lake, metastore: str) -> None:
    orders = _table(lake, "changing", primary_key=["Order_id"])
    orders.upsert(_rows(1, 2))
    orders.upsert(_rows(3, day=NEXT))
    orders.report_hive(metastore)
    assert _parameters(metastore, "changing", "2026-11-18", "a/b c")["numRows"] == "2"
    orders.upsert(_rows(2))
    assert orders.report_hive(metastore, idle=timedelta(hours=1)).at_work == 2
    assert orders.report_hive(metastore, dry_run=True).told == ("dt=2026-11-18/place=a%2Fb%20c",)
    one = orders.report_hive(metastore, partitions=[{"dt": NEXT, "place": "a/b c"}])
    assert (one.told, one.partitions) == ((), 1)
    assert len(orders.report_hive(metastore).told) == 1
    merged = _parameters(metastore, "changing", "2026-11-18", "a/b c")
    said = {name: merged[name] for name in ("lakelib.plain_reads", "numRows", "lakelib.rows_at_most", "numFiles")}
    assert said == {"lakelib.plain_reads": "inexact", "numRows": "-1", "lakelib.rows_at_most": "3", "numFiles": "2"}
    orders.compact(full=True)
    orders.report_hive(metastore)
    old_files_stay = _parameters(metastore, "changing", "2026-11-18", "a/b c")
    assert (old_files_stay["lakelib.plain_reads"], old_files_stay["numFiles"]) == ("inexact", "1")
    orders.expire(keep_last=1, older_than=timedelta(0), grace=timedelta(0))
    lake.vacuum(orphans=False)
    orders.report_hive(metastore)
    clean = _parameters(metastore, "changing", "2026-11-18", "a/b c")
    assert (clean["lakelib.plain_reads"], clean["numRows"]) == ("exact", "2")
    orders.delete(f"dt = '{NEXT}'")
    orders.mark_done({"dt": DAY, "place": "a/b c"})
    last = orders.report_hive(metastore)
    assert (last.dropped, len(last.told)) == (("2026-11-19/a/b c",), 1)
    assert _parameters(metastore, "changing", "2026-11-19", "a/b c") == {}
    lake.drop_table("shop.changing")
    anew = _table(lake, "changing")
    anew.append(_rows(7))
    assert anew.report_hive(metastore).is_new


def test_a_table_without_partitions_has_its_statistics_itself(lake: Lake, metastore: str) -> None:
    plain = lake.create_table("shop.plain", "id BIGINT")
    plain.append(pa.table({"id": [1, 2, 3]}))
    for _ in range(2):
        assert plain.report_hive(metastore, partitions=[{}]).told == ()
    with Metastore(parse_address(metastore)) as client:
        told = client.find_table("shop", "plain").parameters
    said = {name: told[name] for name in ("numRows", "lakelib.plain_reads", "lakelib.snapshot", "EXTERNAL")}
    assert said == {"numRows": "3", "lakelib.plain_reads": "exact", "lakelib.snapshot": "1", "EXTERNAL": "TRUE"}


def test_comments_are_told_and_cut_to_what_hive_keeps(lake: Lake, metastore: str) -> None:
    plain = lake.create_table("shop.said", "id BIGINT COMMENT 'the key', v INT")
    plain.append(pa.table({"id": [1]}))
    plain.report_hive(metastore)
    plain.evolve(comment={"v": "ü" * 300})
    plain.report_hive(metastore)
    with Metastore(parse_address(metastore)) as client:
        told = client.find_table("shop", "said").sd.cols
    assert [each.comment for each in told] == ["the key", "ü" * 256]


def test_a_table_of_somebody_else_stays_as_it_is(lake: Lake, metastore: str) -> None:
    own = _table(lake, "taken")
    own.append(_rows(1))
    own.report_hive(metastore, database="mine")
    other = _table(lake, "Taken")
    with pytest.raises(InvalidInputError) as taken:
        other.report_hive(metastore, database="mine")
    assert taken.value.kind == "hive_table_taken"
    empty = own.append(_rows(2, place=""))
    assert empty.id == 2
    result = own.report_hive(metastore, database="mine")
    assert [each.why for each in result.failed] == ["Hive takes an empty text in a partition for NULL"]


@pytest.mark.parametrize("way", ["closed", "silent"])
def test_a_publish_stands_while_the_metastore_is_away(
    lake: Lake, metastore: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Nobody listens there, or somebody who never answers. The next report makes up for it."""
    name = f"away_{way}"
    spec_file = tmp_path / "table.yaml"
    spec_file.write_text(
        f"table: shop.{name}\ncolumns: id BIGINT, dt DATE\nprimary_key: [id]\npartition_by: [dt]\n"
        "source: {format: json, path: '/nowhere/{partition}/*.json'}\npartition: {column: dt, every: day}\n"
        "publish: {mark_done: [done_partition], report: hive}\n"
    )
    spec = load_spec(spec_file)
    table = lake.create_table(f"shop.{name}", "id BIGINT, dt DATE", primary_key=["id"], partition_by=["dt"])
    snapshot = table.append(pa.table({"id": [1], "dt": [DAY]}))
    monkeypatch.setattr("lakelib.interop.hive.metastore.parse_address.__defaults__", (0.5,))
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if way == "silent":
            server.listen()
        monkeypatch.setenv("LAKE_VAR_HIVE_METASTORE", f"thrift://127.0.0.1:{server.getsockname()[1]}")
        following.follow(lake, spec, "2026-11-18", snapshot.id)
        start = time.monotonic()
        with pytest.raises(RetryableError) as away:
            following.report(lake, spec, "2026-11-18", snapshot.id)
    assert (away.value.kind, time.monotonic() - start < 20) == ("report_failed", True)
    assert (table.head, table.is_done({"dt": DAY})) == (snapshot, True)
    monkeypatch.setenv("LAKE_VAR_HIVE_METASTORE", metastore)
    told = following.report(lake, spec, "2026-11-18", snapshot.id)
    assert told is not None
    assert told.told == ("dt=2026-11-18",)
    assert "lakelib.done_at" in _parameters(metastore, name, "2026-11-18")
