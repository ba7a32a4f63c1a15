"""The doctor: what it finds in catalog and storage, what it does not take for a finding, what it puts right. On local
files and on S3."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelib import InvalidInputError, Lake, NotFoundError, Table
from lakelib.catalog import doctor as catalog_doctor
from lakelib.model.doctor import DoctorReport, Harm
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import Storage, open_storage
from tests.acceptance.support import NewTable, data

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("note", pa.string())])
NOW = timedelta(0)


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def table(new_table: NewTable) -> Table:
    """Three upserts of 40 rows into two partitions, and a compaction of the first two."""
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["day"], buckets=2, options={"min_bucket_file_bytes": 1})
    for number in range(3):
        table.upsert(rows(40, f"version {number}"))
        if number == 1:
            table.compact(full=True)
    return table


@pytest.fixture
def stored(table: Table, storage: StorageSettings) -> Storage:
    return open_storage(table.location, storage)


@pytest.fixture
def catalog(module_catalog_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(module_catalog_url, autocommit=True) as connection:
        yield connection


def rows(many: int, note: str) -> pa.Table:
    return data(SCHEMA, *((number, ("mon", "tue")[number % 2], note) for number in range(many)))


def kinds(report: DoctorReport) -> dict[str, int]:
    return dict(report.counts)


def a_file(table: Table) -> str:
    return next(iter(table.files())).path


def write_like(stored: Storage, path: str, change: Callable[[pa.Table], pa.Table]) -> int:
    """The file with other rows in the place of its own; its size."""
    with stored.open_input(path) as stream:
        found = pq.read_table(stream)
    with stored.open_output(path) as stream:
        pq.write_table(change(found), stream)
    return stored.size(path)


def test_a_sound_lake_has_no_findings(lake: Lake, table: Table) -> None:
    table.stage_upsert(rows(3, "staged"))
    for deep in (False, True):
        report = lake.doctor(table.name, deep=deep)
        assert (report.findings, report.is_healthy, report.severity) == ((), True, None)
        assert report.tables == (table.name,)
        assert report.files >= len(table.files())
        assert report.size_bytes >= sum(file.size_bytes for file in table.files())


def test_a_deep_look_at_every_kind_of_table_finds_nothing(lake: Lake, new_table: NewTable) -> None:
    log = new_table(SCHEMA)
    log.append(rows(30, "é"))
    log.append(rows(30, "x" * 300))
    log.delete("id < 5")
    wide = pa.schema(
        [
            ("k", pa.decimal128(20, 3)), ("t", pa.timestamp("us", "UTC")), ("b", pa.binary()), ("f", pa.float64()),
            ("o", pa.bool_()), ("s", pa.struct([("x", pa.int32())])), ("d", pa.date32()),
        ]
    )  # fmt: skip
    values = pa.table(
        {
            "k": pa.array([Decimal(number) for number in range(-5, 5)], pa.decimal128(20, 3)),
            "t": pa.array(range(-5, 5), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "b": pa.array([bytes([255] * 70), b"", None] * 3 + [b"a"], pa.binary()),
            "f": pa.array([float("nan"), -0.0, 1.5, None, float("-inf")] * 2),
            "o": pa.array([True, False, None, True, True] * 2),
            "s": pa.array([{"x": 1}, None] * 5, pa.struct([("x", pa.int32())])),
            "d": pa.array(range(10), pa.int32()).cast(pa.date32()),
        },
        wide,
    )
    keyed = new_table(wide, primary_key=["t", "k"], partition_by=["o", "d"], buckets="dynamic")
    keyed.upsert(values)
    keyed.delete_keys(values.slice(2, 3))
    keyed.evolve(rename={"f": "g"}, add=[("n", "INT")])
    keyed.upsert(
        values.rename_columns(["k", "t", "b", "g", "o", "s", "d"]).append_column("n", pa.array(range(10), pa.int32()))
    )
    keyed.compact(full=True)
    empty = new_table(SCHEMA)
    report = lake.doctor(log.name, keyed.name, empty.name, deep=True)
    assert report.findings == ()


def test_a_missing_file_is_told_with_what_is_lost(lake: Lake, table: Table, stored: Storage) -> None:
    path = a_file(table)
    stored.delete_files([path])
    report = lake.doctor(table.name)
    (finding,) = report.findings
    assert (finding.kind, finding.severity, finding.table) == ("missing_file", Harm.DAMAGED, table.name)
    assert finding.place == stored.uri_of(path)
    assert "rows of the snapshots from" in finding.detail
    assert finding.remedy
    assert not report.is_healthy


def test_a_truncated_file_is_told(lake: Lake, table: Table, stored: Storage) -> None:
    path = a_file(table)
    stored.write_bytes(path, stored.read_bytes(path)[:-20])
    assert kinds(lake.doctor(table.name)) == {"truncated_file": 1}


def test_a_file_whose_footer_is_broken_is_told(lake: Lake, table: Table, stored: Storage) -> None:
    path = a_file(table)
    assert table.scan().count() == 40  # its footer is known now: the doctor must look anew
    stored.write_bytes(path, stored.read_bytes(path)[:-20] + b"?" * 20)
    assert kinds(lake.doctor(table.name)) == {"unreadable_file": 1}


def test_a_flipped_bit_in_a_page_is_found_by_a_deep_look(lake: Lake, table: Table, stored: Storage) -> None:
    path = a_file(table)
    content = bytearray(stored.read_bytes(path))
    chunk = pq.read_metadata(pa.BufferReader(bytes(content))).row_group(0).column(0)
    content[chunk.data_page_offset + chunk.total_compressed_size - 2] ^= 1
    stored.write_bytes(path, bytes(content))
    assert kinds(lake.doctor(table.name)) == {}
    assert kinds(lake.doctor(table.name, deep=True)) == {"unreadable_file": 1}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("wrong_order", lambda found: found.take(list(reversed(range(found.num_rows))))),
        ("wrong_partition", lambda found: found.set_column(1, "day", pa.array(["wed"] * found.num_rows))),
        ("wrong_bucket", lambda found: found.set_column(0, "id", pa.array(range(found.num_rows)))),
        ("wrong_bounds", lambda found: found.set_column(2, "note", pa.array(["zzz"] * found.num_rows))),
        ("invalid_text", lambda found: found.set_column(2, "note", broken_text(found.num_rows))),
        ("wrong_commit", lambda found: found.set_column(3, "_commit", pa.array([99] * found.num_rows))),
    ],
)
def test_rows_that_are_not_what_the_catalog_says_are_found_by_a_deep_look(
    lake: Lake, table: Table, stored: Storage, catalog: psycopg.Connection[Any], kind: str, change: Any
) -> None:
    path = a_file(table)
    size = write_like(stored, path, change)
    catalog.execute("update lake.data_file set size_bytes = %s where path = %s", (size, path))
    assert kinds(lake.doctor(table.name)) == {}
    report = lake.doctor(table.name, deep=True)
    assert kind in kinds(report)
    assert {finding.severity for finding in report.findings} == {Harm.DAMAGED}


def broken_text(many: int) -> pa.Array:
    return pa.Array.from_buffers(
        pa.string(), many, [None, pa.array(range(many + 1), pa.int32()).buffers()[1], pa.py_buffer(b"\xff" * many)]
    )


def test_fewer_rows_than_the_catalog_knows_are_told_by_the_footer(
    lake: Lake, table: Table, stored: Storage, catalog: psycopg.Connection[Any]
) -> None:
    path = a_file(table)
    size = write_like(stored, path, lambda found: found.slice(1))
    catalog.execute("update lake.data_file set size_bytes = %s where path = %s", (size, path))
    assert kinds(lake.doctor(table.name)) == {"wrong_rows": 1}


def test_an_orphan_is_told_with_its_age_once_it_is_old_enough(lake: Lake, table: Table, stored: Storage) -> None:
    stored.write_bytes("day=mon/upsert-" + "0" * 32 + "-00000.parquet", b"left behind")
    young = lake.doctor(table.name)
    assert (kinds(young), young.unstaged) == ({}, 1)
    report = lake.doctor(table.name, grace=NOW)
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("orphaned_file", Harm.NOTABLE)
    assert "11 bytes" in finding.detail
    assert "hours old" in finding.detail
    assert report.is_healthy


def test_files_that_others_keep_there_and_queued_ones_are_no_findings(
    lake: Lake, table: Table, stored: Storage
) -> None:
    stored.write_bytes("notes.txt", b"mine")
    table.expire(keep_last=1, grace=timedelta(days=1))
    assert lake.doctor(table.name, grace=NOW).findings == ()


def test_a_live_file_in_the_deletion_queue_is_told_and_taken_out(
    lake: Lake, table: Table, catalog: psycopg.Connection[Any]
) -> None:
    path = a_file(table)
    catalog.execute("alter table lake.deletion_queue disable trigger named_files_stay")  # which refuses it
    catalog.execute(
        "insert into lake.deletion_queue (table_id, path, size_bytes, not_before)"
        " select table_id, path, size_bytes, now() from lake.data_file where path = %s",
        (path,),
    )
    catalog.execute("alter table lake.deletion_queue enable trigger named_files_stay")
    report = lake.doctor(table.name, repair=["queue"], dry_run=True)
    assert kinds(report) == {"queued_live_file": 1}
    assert report.severity is Harm.AT_RISK
    assert [(repair.kind, repair.place) for repair in report.repairs] == [("queue", path)]
    assert kinds(lake.doctor(table.name)) == {"queued_live_file": 1}
    assert len(lake.doctor(table.name, repair=["queue"]).repairs) == 1
    lake.vacuum(grace=NOW)
    assert kinds(lake.doctor(table.name)) == {}


def test_leases_that_ran_out_go_when_they_are_meant(lake: Lake, table: Table, catalog: psycopg.Connection[Any]) -> None:
    catalog.execute(
        "insert into lake.lease (id, table_id, snapshot_id, holder, expires_at)"
        " select gen_random_uuid(), table_id, id, 'host/7', now() - interval '2 days' from lake.snapshot"
        " where commit_id = %s",
        (table.history()[0].commit_id,),
    )
    assert kinds(lake.doctor(table.name)) == {"spent_lease": 1}
    assert lake.doctor(table.name, repair=["leases"], dry_run=True).repairs[0].place == "lease of host/7"
    assert len(lake.doctor(table.name, repair=["leases"]).repairs) == 1
    assert kinds(lake.doctor(table.name)) == {}


def test_a_commit_that_waits_for_long_is_told(lake: Lake, table: Table, catalog: psycopg.Connection[Any]) -> None:
    staged = table.stage_upsert(rows(2, "waits"))
    assert kinds(lake.doctor(table.name)) == {}
    catalog.execute("update lake.commit set staged_at = now() - interval '3 days' where id = %s", (staged.id,))
    report = lake.doctor(table.name)
    assert kinds(report) == {"waiting_commit": 1}
    assert str(staged.id) in report.findings[0].place


DISTURBANCES = {
    "wrong_head": 'update lake."table" set head_id = head_id - 1 where id = %(table)s',
    "wrong_file_snapshot": "update lake.data_file set added_snapshot = 2, removed_snapshot = null"
    " where id = (select min(id) from lake.data_file where table_id = %(table)s)",
    "unpublished_file": "update lake.data_file set added_snapshot = null, removed_snapshot = null"
    " where id = (select max(id) from lake.data_file where table_id = %(table)s)",
    "wrong_commit_state": "update lake.commit set snapshot_id = 77 where table_id = %(table)s and snapshot_id = 2",
    "wrong_progress": "update lake.commit set application = 'loader', version = 3"
    " where table_id = %(table)s and snapshot_id = 2",
    "future_snapshot": "update lake.snapshot set committed_at = now() + interval '1 hour'"
    " where table_id = %(table)s and id = 2",
}


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_a_catalog_that_does_not_agree_with_itself_is_told(
    lake: Lake, table: Table, catalog: psycopg.Connection[Any], kind: str
) -> None:
    (table_id,) = catalog.execute(
        "select table_id from lake.snapshot where commit_id = %s", (table.history()[0].commit_id,)
    ).fetchone() or (0,)
    catalog.execute(DISTURBANCES[kind].encode(), {"table": table_id})
    report = lake.doctor(table.name)
    assert kind in kinds(report)
    assert all(finding.table == table.name for finding in report.findings)


def test_what_a_writer_stages_while_the_doctor_looks_is_no_finding(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_span = catalog_doctor.find_span

    def then_write(*arguments: Any) -> Any:
        span = find_span(*arguments)
        table.upsert(rows(10, "meanwhile"))
        return span

    monkeypatch.setattr(catalog_doctor, "find_span", then_write)
    assert lake.doctor(table.name, grace=NOW).findings == ()


def test_what_is_expired_and_deleted_while_the_doctor_looks_is_no_finding(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_page = catalog_doctor.load_page

    def then_expire(*arguments: Any) -> Any:
        page = load_page(*arguments)
        table.compact(full=True)
        table.expire(keep_last=1, grace=NOW)
        lake.vacuum(grace=timedelta(hours=1))
        return page

    monkeypatch.setattr(catalog_doctor, "load_page", then_expire)
    assert lake.doctor(table.name).findings == ()


def test_beside_writers_compactions_and_vacuums_nothing_is_found(lake: Lake, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["day"], buckets=2)
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            table.upsert(rows(20, f"version {number}"))
            if number % 3 == 0:
                table.compact(full=True)
                table.expire(keep_last=1, grace=NOW)
                lake.vacuum(grace=timedelta(hours=1))

    worker = threading.Thread(target=churn)
    worker.start()
    try:
        reports = [lake.doctor(table.name, deep=number % 2 == 0) for number in range(6)]
    finally:
        stop.set()
        worker.join()
    assert [finding for report in reports for finding in report.findings] == []


def test_every_finding_is_told_and_the_report_keeps_the_first(
    lake: Lake, table: Table, stored: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelib.ops.doctor_files._KEPT_FINDINGS", 1)
    stored.delete_files([file.path for file in table.files()])
    heard: list[str] = []
    report = lake.doctor(table.name, tell=lambda finding: heard.append(finding.place))
    assert len(heard) == report.counts["missing_file"] == len(table.files())
    assert len(report.findings) == 1


def test_a_catalog_whose_clock_differs_is_told(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for ahead, severity in ((timedelta(seconds=-20), Harm.NOTABLE), (timedelta(hours=1), Harm.AT_RISK)):
        monkeypatch.setattr(catalog_doctor, "measure_clock", lambda catalog, ahead=ahead: (ahead, timedelta(0)))
        told = {finding.severity for finding in lake.doctor(table.name).findings if finding.kind == "clocks_differ"}
        assert told == {severity}


def test_the_stores_clock_is_asked(stored: Storage, storage_kind: str) -> None:
    told = stored.clock()
    if storage_kind == "local":
        assert told is None
    else:
        assert told is not None
        assert abs(told - datetime.now(UTC)) < timedelta(minutes=1)


def test_wrong_requests_are_refused(lake: Lake, table: Table) -> None:
    with pytest.raises(NotFoundError):
        lake.doctor("shop.nothing")
    wrong: list[dict[str, Any]] = [
        {"repair": ["rows"]},
        {"repair": "queue"},
        {"repair": ["files"]},
        {"from_backup": "/tmp/nowhere"},
        {"deep": "yes"},
        {"dry_run": 1},
        {"grace": timedelta(-1)},
    ]
    for given in wrong:
        with pytest.raises(InvalidInputError):
            lake.doctor(table.name, **given)
