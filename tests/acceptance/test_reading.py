"""Reading: the snapshot that was meant, in its own schema, filtered as SQL says, merged before it is filtered."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelib import InvalidInputError, Lake, NotFoundError, Table
from lakelib.rows.hash import key_hashes
from tests.acceptance.support import Engine, NewTable, data, rows_of

SCHEMA = pa.schema([("id", pa.int64()), ("dt", pa.date32()), ("v", pa.int64()), ("s", pa.string())])
DAY = date(2026, 11, 18)


@pytest.fixture(scope="module", params=["local", "s3"])
def storage_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[4, "dynamic", "postpone"])
def buckets(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def own_table(engine: Engine, new_table: NewTable, buckets: Any) -> Table:
    """Ten rows of value 1, of which the first five then get value 2."""
    options = {"min_bucket_file_bytes": 0, "row_group_rows": 3, "read_batch_rows": 2}
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["dt"], buckets=buckets, options=options)
    engine.write(table, "upsert", data(SCHEMA, *((number, DAY, 1, "old") for number in range(10))))
    engine.write(table, "upsert", data(SCHEMA, *((number, DAY, 2, None) for number in range(5))))
    return table


@pytest.fixture(scope="module")
def tables(lake: Lake) -> dict[Any, Table]:
    """What the module has written, by who wrote it and its buckets."""
    return {}


@pytest.fixture
def table(request: pytest.FixtureRequest, engine: Engine, buckets: Any, tables: dict[Any, Table]) -> Table:
    """The same rows in one table for all tests that change none."""
    if (found := tables.get((engine, buckets))) is None:
        found = tables[engine, buckets] = request.getfixturevalue("own_table")
    return found


def test_a_predicate_does_not_resurrect_an_old_version(engine: Engine, table: Table) -> None:
    assert rows_of(engine, table.scan(columns=["id"], where="v = 1")) == [(number,) for number in range(5, 10)]
    assert rows_of(engine, table.scan(columns=["id"], where="s = 'old' and id < 7")) == [(5,), (6,)]
    assert rows_of(engine, table.scan(columns=["id"], where="_commit = 1 and id < 7")) == [(5,), (6,)]


def test_a_predicate_does_not_resurrect_a_deleted_row(engine: Engine, own_table: Table) -> None:
    own_table.delete("v = 2 and id < 2")
    engine.write(own_table, "delete_keys", data({"id": pa.int64(), "dt": pa.date32()}, (9, DAY)))
    assert rows_of(engine, own_table.scan(columns=["id"], where="v = 1")) == [(5,), (6,), (7,), (8,)]
    assert rows_of(engine, own_table.scan(columns=["id"], where="id in (0, 1, 2, 9)")) == [(2,)]


def test_columns_may_leave_out_the_key(engine: Engine, table: Table) -> None:
    assert rows_of(engine, table.scan(columns=["s", "v"])) == [("old", 1)] * 5 + [(None, 2)] * 5
    assert rows_of(engine, table.scan(columns=["s"], where="v > 1")) == [(None,)] * 5
    assert rows_of(engine, table.scan(columns=["_commit"], where="id = 3")) == [(2,)]


def test_a_shallow_file_below_deep_neighbours_needs_no_key_column(engine: Engine, new_table: NewTable) -> None:
    """One half of the keys has a file of its own; the other half is read from the shallow file alone."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    options = {"min_bucket_file_bytes": 5_000}
    table = new_table(schema, primary_key=["id"], buckets=2, options=options)
    shallow = [(number, "s") for number in range(20)]
    engine.write(table, "upsert", data(schema, *shallow))
    prefixes = key_hashes([pa.array(range(1000))]) >> np.uint64(63)
    deep = [(number, "x" * 200) for number in range(1000) if prefixes[number] == 0]
    engine.write(table, "upsert", data(schema, *deep))
    assert {file.depth for file in table.files()} == {0, 1}
    expected = sorted([(value,) for _, value in {**dict(shallow), **dict(deep)}.items()], key=repr)
    assert rows_of(engine, table.scan(columns=["v"])) == expected
    assert rows_of(engine, table.scan(columns=["v"], where="v = 's'")) == [(v,) for (v,) in expected if v == "s"]
    assert table.scan().count() == len(expected)


def test_every_row_knows_its_commit(engine: Engine, table: Table) -> None:
    found = rows_of(engine, table.scan(columns=["id", "_commit"]))
    assert found == [(number, 2 if number < 5 else 1) for number in range(10)]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("s = 'old' or s <> 'old'", 5),
        ("not (s = 'old')", 0),
        ("s is null", 5),
        ("s is null or s = 'old'", 10),
        ("s in ('x', null)", 0),
        ("s not in ('x', null)", 0),
        ("s not in ('x')", 5),
        ("null", 0),
        ("true", 10),
        ("dt = '2026-11-18'", 10),
        ("dt > '2026-11-18'", 0),
        ("id between 2 and 4 and v = 2", 3),
        ("id = 1.5", 0),
        ("id <> 1.5", 10),
        ("id > 99999999999999999999", 0),
        ("v = id", 1),
        ("s like 'o%'", 5),
        ("s <=> null", 5),
    ],
)
def test_a_predicate_means_what_sql_says(engine: Engine, table: Table, where: str, expected: int) -> None:
    scan = table.scan(where=where)
    assert engine.read(scan).num_rows == scan.count() == expected


def test_a_scan_stays_at_its_snapshot(engine: Engine, own_table: Table) -> None:
    scan = own_table.scan(columns=["v"])
    own_table.delete("true")
    assert engine.read(scan).num_rows == scan.count() == 10
    assert own_table.scan().count() == 0


def test_batches_are_as_small_as_asked(table: Table) -> None:
    batches = list(table.scan().to_batches())
    assert sum(batch.num_rows for batch in batches) == 10
    assert max(batch.num_rows for batch in batches) <= 2


def test_an_unread_stream_may_be_left(table: Table) -> None:
    stream = table.scan().to_batches()
    next(stream)
    stream.close()
    assert table.scan().count() == 10


def test_travel_by_snapshot(engine: Engine, table: Table) -> None:
    assert rows_of(engine, table.scan(columns=["v"], at=1)) == [(1,)] * 10
    assert rows_of(engine, table.scan(columns=["v"], at=2)) == rows_of(engine, table.scan(columns=["v"]))
    assert table.scan(at=1).snapshot_id == 1


def test_travel_by_time_takes_the_newest_snapshot_up_to_that_moment(table: Table) -> None:
    second, first = table.history()
    step = timedelta(microseconds=1)
    assert table.scan(at=first.committed_at).snapshot_id == 1
    assert table.scan(at=second.committed_at - step).snapshot_id == 1
    assert table.scan(at=second.committed_at).snapshot_id == 2
    assert table.scan(at=datetime.now(UTC)).snapshot_id == 2
    with pytest.raises(NotFoundError, match=r"no snapshot at .* its oldest is of"):
        table.scan(at=first.committed_at - step)


@pytest.mark.parametrize("at", [0, 3, -1, 2**70, "tag:none", "tag:\0"])
def test_a_snapshot_that_is_not_there_is_not_found(table: Table, at: Any) -> None:
    with pytest.raises(NotFoundError):
        table.scan(at=at)


@pytest.mark.parametrize("at", [np.int64(1), np.uint8(1)])
def test_a_snapshot_may_be_named_by_any_kind_of_integer(table: Table, at: Any) -> None:
    assert table.scan(at=at).snapshot_id == 1
    assert type(table.scan(at=at).snapshot_id) is int


@pytest.mark.parametrize(
    "at",
    [
        True,
        np.True_,
        1.0,
        np.float64(1),
        "one",
        " 1",
        "2026-11-18\n",
        datetime(2026, 11, 18),
        np.datetime64("2026-11-18"),
        DAY,
        [1],
    ],
)
def test_a_moment_without_a_zone_and_the_like_are_refused(table: Table, at: Any) -> None:
    with pytest.raises(InvalidInputError, match="time zone"):
        table.scan(at=at)


def test_text_names_a_snapshot_as_numbers_tags_and_moments_do(own_table: Table) -> None:
    own_table.tag("of text", at="1")
    later = own_table.history()[0].committed_at + timedelta(seconds=1)
    texts = ["1", "tag:of text", later.isoformat(), later.replace(tzinfo=None).isoformat(sep=" ")]
    assert [own_table.scan(at=text).snapshot_id for text in texts] == [1, 1, own_table.head.id, own_table.head.id]
    assert len(own_table.files(at="1")) == len(own_table.files(at=1))


def test_an_old_snapshot_has_its_old_schema(engine: Engine, own_table: Table) -> None:
    own_table.evolve(add=[("note", "string")], drop=["s"], rename={"v": "value"})
    own_table.evolve(rename={"id": "key"})
    assert own_table.scan(at=2).schema.names == ["id", "dt", "v", "s"]
    assert rows_of(engine, own_table.scan(at=2, columns=["id", "v", "s"], where="v = 2 and id = 1")) == [(1, 2, None)]
    assert rows_of(engine, own_table.scan(columns=["key", "value", "note"], where="key = 1")) == [(1, 2, None)]
    with pytest.raises(InvalidInputError, match="no column 'v'"):
        own_table.scan(columns=["v"])
    with pytest.raises(InvalidInputError, match=r"'note'.*The columns: id, dt, v, s"):
        own_table.scan(at=2, where="note = 'x'")


def test_a_table_without_a_snapshot_reads_as_empty(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"])
    assert table.head is None
    assert engine.read(table.scan(columns=["s"], where="id = 1")).schema == pa.schema([("s", pa.string())])
    assert table.scan().count() == 0
    assert table.scan().snapshot_id is None
    with pytest.raises(NotFoundError, match="it has none yet"):
        table.scan(at=datetime.now(UTC))


@pytest.mark.parametrize(
    ("columns", "word"), [([], r"\(\)"), ("id", "'id'"), (["nope"], "'nope'"), (["id", "ID"], "'ID'"), ([1], "1")]
)
def test_wrong_columns_are_refused(table: Table, columns: Any, word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        table.scan(columns=columns)


def test_a_scan_and_its_explanation_show_what_they_are(table: Table) -> None:
    scan = table.scan(columns=["v", "s"], where="v > 1")
    assert repr(scan) == f"<Scan of {table.name} at snapshot 2: v, s where v > 1>"
    assert len(repr(table.scan(where=f"s = '{'x' * 500}\n'"))) < 250
    assert repr(scan.explain()) == str(scan.explain())


def test_explain_tells_what_is_pruned(table: Table) -> None:
    found = table.scan(where="dt = '2000-01-01'").explain()
    assert found.files == 0
    assert found.files_total == len(table.files())
    assert "by partition values" in str(found)
