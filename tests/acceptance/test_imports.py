"""Tables of other systems become lake tables: each row that counts there, once, whoever copies it and how often."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import lakelib
from lakelib import Lake
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from lakelib.work.source_delta import delta_options
from tests.acceptance.support import Engine, in_process, rows_of
from tests.conftest import BUCKET, drop_database
from tests.delta_tables import DeltaFolder, column, struct_of

_NUMBERS = count()


@pytest.fixture
def name() -> str:
    """Of a table that is not there yet."""
    return f"local.imported{next(_NUMBERS)}"


def _session(engine: Engine) -> Any:
    """None: this process copies."""
    return getattr(engine, "_session", None)


def _orders(*numbers: int, day: date | None = date(2026, 11, 18)) -> pa.Table:
    kinds = {"id": pa.int64(), "dt": pa.date32(), "amount": pa.decimal128(10, 2)}
    values = {"id": list(numbers), "dt": [day] * len(numbers), "amount": [Decimal(number) for number in numbers]}
    return pa.table(values, schema=pa.schema(kinds))


def _is_there(lake: Lake, name: str) -> bool:
    return name in lake.tables()


def test_only_rows_that_count_come_under_the_names_that_readers_know(
    engine: Engine, lake: Lake, tmp_path: Path, name: str
) -> None:
    """Rows are deleted in files of several row groups, columns were renamed, swapped and dropped, some in a struct."""
    delta = DeltaFolder(tmp_path)
    inner = pa.struct([("c4", pa.int64()), ("gone", pa.string()), ("c5", pa.string())])
    rows = pa.table(
        {
            "a": pa.array(range(100), pa.int64()),
            "dropped": pa.array(["x"] * 100),
            "c2": pa.array([{"c4": each, "gone": "x", "c5": f"t{each}"} for each in range(100)], inner),
            "c6": pa.array([[{"c7": each}] for each in range(100)], pa.list_(pa.struct([("c7", pa.int64())]))),
        }
    )
    older = rows.select(["a"]).slice(0, 3)
    parts = struct_of(column("b", "long", inside="c4", number=4), column("a", "string", inside="c5", number=5))
    listed = {
        "type": "array",
        "containsNull": False,
        "elementType": struct_of(column("n", "long", inside="c7", number=7)),
    }
    delta.commit(
        delta.protocol("columnMapping", "deletionVectors"),
        delta.metadata(
            column("b", "long", inside="a", number=1),
            column("a", parts, inside="c2", number=2),
            column("l", listed, inside="c6", number=6),
            column("day", "date", inside="c3", number=3),
            partition_by=["day"],
            delta__columnMapping__mode="name",
        ),
        delta.file("one.parquet", rows, {"c3": "2026-11-18"}, deleted=[0, 7, 8, 50, 99], row_group_rows=8),
        delta.file("two.parquet", older, {"c3": None}, deleted=[0, 1, 2]),
        delta.file("three.parquet", older, {"c3": ""}),
    )
    done = lake.import_delta(tmp_path, name, session=_session(engine))
    table = lake.table(name)
    kept = [each for each in range(100) if each not in (0, 7, 8, 50, 99)]
    expected = [{"b": n, "a": {"b": n, "a": f"t{n}"}, "l": [{"n": n}], "day": date(2026, 11, 18)} for n in kept] + [
        {"b": n, "a": None, "l": None, "day": None} for n in range(3)
    ]
    found = sorted(engine.read(table.scan()).to_pylist(), key=lambda row: (row["day"] is None, row["b"]))
    assert found == expected
    assert (done.rows, done.version, table.partition_by) == (98, 0, ["day"])


@in_process
def test_comments_come_along(engine: Engine, lake: Lake, tmp_path: Path, name: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"comment": "the key", "other": "x"}), ("v", pa.int32())])
    write_deltalake(tmp_path / "t", pa.table({"id": [1], "v": pa.array([2], pa.int32())}, schema=schema))
    lake.import_delta(str(tmp_path / "t"), name)
    assert [field.metadata for field in lake.table(name).schema] == [{b"comment": b"the key"}, None]


@in_process
def test_columns_are_found_by_number_where_the_log_says_so(
    engine: Engine, lake: Lake, tmp_path: Path, name: str
) -> None:
    delta = DeltaFolder(tmp_path)
    numbered = [
        pa.field("old", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        pa.field("b", pa.int64(), metadata={"PARQUET:field_id": "1"}),
    ]
    rows = pa.table([[1, 2], [10, 20]], schema=pa.schema(numbered))
    delta.commit(
        delta.protocol("columnMapping"),
        delta.metadata(
            column("a", "long", inside="x", number=1),
            column("b", "long", inside="y", number=2),
            delta__columnMapping__mode="id",
        ),
        delta.file("one.parquet", rows),
    )
    lake.import_delta(tmp_path, name)
    assert lake.table(name).scan().to_arrow().to_pylist() == [{"a": 10, "b": 1}, {"a": 20, "b": 2}]


def test_a_version_comes_with_its_columns_and_odd_partitions(
    engine: Engine, lake: Lake, tmp_path: Path, name: str
) -> None:
    """Partitions of values that folders have to escape; columns that have come since; rows that were overwritten."""
    place, at = str(tmp_path / "a b=c"), datetime(2026, 11, 18, 1, 2, 3, 4, tzinfo=UTC)
    texts = ["a/b", "a=b", "%41", "a,b", "é ", None]
    kinds = {"id": pa.int64(), "p": pa.string(), "at": pa.timestamp("us", "UTC"), "d": pa.decimal128(8, 2)}
    rows = pa.table({"id": range(6), "p": texts, "at": [at] * 6, "d": [Decimal("1.50")] * 6}, schema=pa.schema(kinds))
    write_deltalake(place, rows, partition_by=["p", "at", "d"])
    wider = rows.append_column("more", pa.array([{"x": 1}] * 6)).slice(0, 2)
    write_deltalake(place, wider, mode="append", schema_mode="merge")
    DeltaTable(place).delete("id = 3")
    lake.import_delta(place, name, session=_session(engine), batch_bytes=1)
    old = f"{name}_old"
    lake.import_delta(place, old, version=0, session=_session(engine))
    for version, imported in ((2, name), (0, old)):
        theirs = DeltaTable(place, version=version).to_pyarrow_table()
        ours = engine.read(lake.table(imported).scan(columns=theirs.schema.names))
        assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist()))
    assert lake.table(name).partition_by == ["p", "at", "d"]


def test_files_that_differ_become_one_table_with_the_values_of_their_folders(
    engine: Engine, lake: Lake, tmp_path: Path, name: str
) -> None:
    def put(folder: str, rows: dict[str, pa.Array]) -> None:
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table(rows), tmp_path / folder / "rows.parquet")

    put("dt=2026-11-17", {"id": pa.array([1], pa.int32()), "v": pa.array([1.5], pa.float32())})
    put("dt=2026-11-18", {"id": pa.array([2], pa.int64()), "new": pa.array(["x"])})
    put("dt=__HIVE_DEFAULT_PARTITION__", {"id": pa.array([3], pa.int64())})
    columns = "id BIGINT, v DOUBLE, dt DATE, new STRING"
    lake.import_parquet(tmp_path, name, schema=columns, primary_key=["id"], session=_session(engine))
    table = lake.table(name)
    days = [(1, 1.5, date(2026, 11, 17), None), (2, None, date(2026, 11, 18), "x"), (3, None, None, None)]
    assert (rows_of(engine, table.scan()), table.partition_by, table.primary_key) == (days, ["dt"], ["id"])
    again = f"{name}_as_it_is"
    lake.import_parquet(tmp_path, again, session=_session(engine))
    assert [each.type for each in lake.table(again).schema] == [pa.int64(), pa.float32(), pa.string(), pa.string()]


_KILLED = """
    import os, signal, sys, lakelib
    from pathlib import Path

    def die(done, total):
        os.kill(os.getpid(), signal.SIGKILL)

    warehouse, catalog, kind, source, name = sys.argv[1:]
    lake = lakelib.connect(warehouse=warehouse, catalog=catalog)
    getattr(lake, f"import_{kind}")(source, name, primary_key=["id"], batch_bytes=1, tell=die)
"""


@in_process
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_who_is_killed_is_followed_by_one_that_goes_on_from_what_was_pinned(
    engine: Engine, lake: Lake, tmp_path: Path, name: str, kind: str
) -> None:
    """Each batch is killed once it is done; meanwhile the source goes on, and what has come since is left out."""
    place = tmp_path / "source"
    place.mkdir()

    def put(*numbers: int) -> None:
        rows = _orders(*numbers)
        if kind == "delta":
            write_deltalake(place, rows, mode="append")
        else:
            pq.write_table(rows, place / f"{numbers[0]}.parquet")

    for first in (0, 10, 20):
        put(first, first + 1)
    settings = lake.settings
    command = [sys.executable, "-c", textwrap.dedent(_KILLED), settings.warehouse, settings.catalog, kind, str(place)]
    for round in range(2):
        ended = subprocess.run([*command, name], env=os.environ, capture_output=True, timeout=120)
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
        assert lake.table(name).scan().count() == 2 * (round + 1)
        put(30 + 10 * round, 31 + 10 * round)
    bring = getattr(lake, f"import_{kind}")
    done = bring(place, name, primary_key=["id"])
    assert (done.batches, done.batches_before, done.rows) == (3, 2, 6)
    assert sorted(lake.table(name).scan().to_arrow()["id"].to_pylist()) == [0, 1, 10, 11, 20, 21]
    head = lake.table(name).head
    again = bring(place, name, primary_key=["id"])
    assert (again.batches_before, again.rows, again.snapshot) == (3, 6, done.snapshot)
    assert lake.table(name).head == head
    assert not list(Path(lake.table(name).location.removeprefix("file://")).glob("_import*"))


@in_process
def test_a_file_that_was_replaced_meanwhile_stops_the_import(
    engine: Engine, lake: Lake, tmp_path: Path, name: str
) -> None:
    for first in (0, 10):
        pq.write_table(_orders(first), tmp_path / f"{first}.parquet")

    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise StopError

    with pytest.raises(StopError):
        lake.import_parquet(tmp_path, name, batch_bytes=1, tell=stop)
    pq.write_table(_orders(10, 11), tmp_path / "10.parquet")
    with pytest.raises(lakelib.RetryableError) as changed:
        lake.import_parquet(tmp_path, name, batch_bytes=1)
    assert changed.value.kind == "source_changed"
    assert lake.table(name).scan().count() == 1
    with pytest.raises(lakelib.InvalidInputError, match="was begun, and is not finished"):
        lake.import_parquet(tmp_path / "0.parquet", name)


def test_days_that_python_does_not_have_are_keys_and_partitions(
    engine: Engine, lake: Lake, tmp_path: Path, name: str
) -> None:
    days = pa.array([5_000_000, 0, None, 5_000_000], pa.int32()).view(pa.date32())
    moments = pa.array([2**60, 1, 2, 2**60]).view(pa.timestamp("us", "UTC"))
    write_deltalake(tmp_path, pa.table({"at": moments, "dt": days}), partition_by=["dt"])
    key = r"dt='15659-07-15', at='38504-08-17T21:30:06\.846976Z'"
    with pytest.raises(lakelib.InvalidInputError, match=key) as twice:
        lake.import_delta(tmp_path, name, primary_key=["at"], session=_session(engine))
    assert twice.value.kind == "duplicate_key"
    lake.import_delta(tmp_path, name, session=_session(engine))
    found = lake.table(name).scan().to_arrow().column("dt").cast(pa.int32())
    assert sorted(found.drop_null().to_pylist()) == [0, 5_000_000, 5_000_000]
    assert found.null_count == 1


def test_keys_that_are_null_or_come_twice_are_refused_before_anything_is_made(
    engine: Engine, lake: Lake, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many keys there are: those that do not fit into memory are looked at share by share."""
    monkeypatch.setattr("lakelib.work.key_check._IN_MEMORY_ROWS", 100)
    some = _orders(*range(500))
    pq.write_table(some, tmp_path / "a.parquet")
    pq.write_table(_orders(499, 600, 601), tmp_path / "b.parquet")
    session = _session(engine)
    with pytest.raises(lakelib.InvalidInputError, match="id=499") as twice:
        lake.import_parquet(tmp_path, name, primary_key=["id"], session=session)
    assert (twice.value.kind, _is_there(lake, name)) == ("duplicate_key", False)
    lake.import_parquet(tmp_path, name, primary_key=["id"], session=session, duplicates="last", sequence_by=["amount"])
    assert lake.table(name).scan().count() == 502
    by_day = f"{name}_by_day"
    pq.write_table(_orders(499, 600, 601, day=None), tmp_path / "b.parquet")
    lake.import_parquet(tmp_path, by_day, primary_key=["id"], partition_by=["dt"], session=session)
    assert lake.table(by_day).scan().count() == 503
    pq.write_table(pa.table({"id": pa.array([None, 7], pa.int64()), "dt": some["dt"][:2]}), tmp_path / "b.parquet")
    with pytest.raises(lakelib.InvalidInputError, match="Column 'id' is NULL in") as null:
        lake.import_parquet(tmp_path, f"{name}_null", primary_key=["id"], session=session, duplicates="last")
    assert (null.value.kind, _is_there(lake, f"{name}_null")) == ("null_value", False)


@in_process
def test_what_cannot_be_imported_is_said_and_leaves_nothing(
    engine: Engine, lake: Lake, tmp_path: Path, name: str
) -> None:
    def refused(source: Path, kind: str, way: str = "delta", **how: Any) -> str:
        with pytest.raises(lakelib.LakeError) as error:
            getattr(lake, f"import_{way}")(source, name, **how)
        assert (error.value.kind, _is_there(lake, name)) == (kind, False)
        return str(error.value)

    plain = tmp_path / "plain"
    plain.mkdir()
    pq.write_table(_orders(1), plain / "a.parquet")
    assert "There is no Delta table at" in refused(plain, "missing_file")
    assert "There is no file" in refused(tmp_path / "nowhere", "missing_file", "parquet")
    feature = DeltaFolder(tmp_path / "feature")
    feature.commit(feature.protocol("variantType"), feature.metadata(column("id", "long")))
    assert "cannot be imported" in refused(feature.path, "unsupported_feature")
    assert "table of Delta" in refused(feature.path, "not_plain_files", "parquet")
    kind = tmp_path / "kind"
    kind.mkdir()
    pq.write_table(pa.table({"t": pa.array([1], pa.time64("us"))}), kind / "a.parquet")
    assert "'t'" in refused(kind, "unsupported_type", "parquet")
    lost = DeltaFolder(tmp_path / "lost")
    lost.commit(lost.protocol(), lost.metadata(column("id", "long")), lost.file("a.parquet", _orders(1).select(["id"])))
    refused(lost.path, "snapshot_not_found", version=7)
    refused(lost.path, "unknown_column", primary_key=["nix"])
    (lost.path / "a.parquet").unlink()
    assert "a.parquet" in refused(lost.path, "missing_file")


@in_process
def test_a_column_that_came_later_is_null_in_files_before(
    engine: Engine, lake: Lake, tmp_path: Path, name: str
) -> None:
    """Also one that orders rows; but not the key."""
    delta = DeltaFolder(tmp_path)
    newer = pa.table({"id": pa.array([1, 2], pa.int64()), "v": ["new", "new"], "at": pa.array([5, None], pa.int64())})
    delta.commit(
        delta.protocol(),
        delta.metadata(column("id", "long"), column("v", "string"), column("at", "long")),
        delta.file("a.parquet", newer),
        delta.file("b.parquet", pa.table({"id": pa.array([1, 2], pa.int64()), "v": ["old", "old"]})),
    )
    how: dict[str, Any] = {"primary_key": ["id"], "sequence_by": ["at"], "duplicates": "last"}
    lake.import_delta(tmp_path, name, **how)
    assert rows_of(engine, lake.table(name).scan()) == [(1, "new", 5), (2, "old", None)]
    delta.commit(delta.file("c.parquet", pa.table({"v": ["whose?"]})))
    with pytest.raises(lakelib.InvalidInputError, match="Column 'id' is NULL") as null:
        lake.import_delta(tmp_path, f"{name}_null", **how)
    assert (null.value.kind, _is_there(lake, f"{name}_null")) == ("null_value", False)


@in_process
def test_a_table_with_rows_of_its_own_stays_as_it_is(engine: Engine, lake: Lake, tmp_path: Path, name: str) -> None:
    pq.write_table(_orders(1), tmp_path / "a.parquet")
    table = lake.create_table(name, "id BIGINT, dt DATE, amount DECIMAL(12, 2), own STRING", primary_key=["id"])
    with pytest.raises(lakelib.InvalidInputError, match="its primary_key is another one: id") as other:
        lake.import_parquet(tmp_path, name, primary_key=["dt"])
    (tmp_path / "odd").mkdir()
    pq.write_table(pa.table({"id": [1], "odd": ["x"]}), tmp_path / "odd" / "a.parquet")
    with pytest.raises(lakelib.InvalidInputError, match="'odd'"):
        lake.import_parquet(tmp_path / "odd", name)
    (tmp_path / "odd" / "a.parquet").unlink()
    told = lake.import_parquet(tmp_path, name, primary_key=["id"], dry_run=True)
    assert (told.dry_run, told.files, told.snapshot, table.head) == (True, 1, None, None)
    lake.import_parquet(tmp_path, name)
    assert table.scan().to_arrow().to_pylist()[0] | {"own": None} == table.scan().to_arrow().to_pylist()[0]
    pq.write_table(_orders(2), tmp_path / "b.parquet")
    (tmp_path / "c").mkdir()
    pq.write_table(_orders(3), tmp_path / "c" / "c.parquet")
    with pytest.raises(lakelib.InvalidInputError) as full:
        lake.import_parquet(tmp_path / "c", name)
    assert (other.value.kind, full.value.kind, table.scan().count()) == ("table_exists", "table_exists", 1)


@in_process
def test_a_delta_table_on_s3_is_imported(
    engine: Engine, make_database: Callable[[], str], s3_settings: StorageSettings, tmp_path: Path
) -> None:
    given = {key: str(value) for key, value in asdict(s3_settings).items() if value is not None}
    root, catalog = f"s3://{BUCKET}/{tmp_path.name}", make_database()
    reach = delta_options(open_storage(root, s3_settings)) | {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}
    write_deltalake(f"{root}/delta", _orders(1, 2, day=None), partition_by=["dt"], storage_options=reach)
    with lakelib.connect(warehouse=f"{root}/lake", catalog=catalog, **given) as lake:
        lake.create_namespace("far")
        lake.import_delta(f"{root}/delta", "far.orders")
        assert sorted(lake.table("far.orders").scan().to_arrow()["id"].to_pylist()) == [1, 2]
    drop_database(catalog)
