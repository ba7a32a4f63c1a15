"""Rows are changed in the words people know: updates and merges, as builders and as statements, become one commit, and
what is wrong with one changes nothing."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelib import ConflictError, InvalidInputError, Lake, LakeError, NotFoundError, RejectedError, Table
from lakelib.model.table import Proposal
from lakelib.ops import revise_plan
from lakelib.specs.suite import parse_suite
from tests.acceptance.support import NewTable
from tests.staging_hooks import before_staging

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("p", pa.string()), ("v", pa.int32()), ("d", pa.decimal128(6, 2))]
)
START = [(1, "a", 1, Decimal("1.00")), (2, "a", 20, None), (3, "b", 30, Decimal("3.00")), (4, None, None, None)]


def rows(*given: tuple[Any, ...], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in given], schema=schema)


def found(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    read = table.scan(list(columns) or None).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in read), key=repr)


def effect(snapshot: Any) -> tuple[Any, ...]:
    return tuple(snapshot.summary[f"rows_{name}"] for name in ("inserted", "updated", "deleted"))


@pytest.fixture
def table(new_table: NewTable) -> Table:
    table = new_table(SCHEMA, primary_key=["id"])
    table.upsert(rows(*START))
    return table


@pytest.fixture
def parted(new_table: NewTable) -> Table:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"])
    table.upsert(rows(*START))
    return table


@pytest.fixture
def loose(new_table: NewTable) -> Table:
    table = new_table(SCHEMA, partition_by=["p"])
    table.append(rows(*START))
    table.append(rows(START[0]))
    return table


# Updates


def test_an_update_computes_each_row_from_what_it_was(table: Table) -> None:
    snapshot = table.update(
        {"v": "v + 1", "d": "coalesce(d, 0) + $more"}, "id < 4", parameters={"more": Decimal("0.5")}
    )

    assert found(table) == [
        (1, "a", 2, Decimal("1.50")),
        (2, "a", 21, Decimal("0.50")),
        (3, "b", 31, Decimal("3.50")),
        (4, None, None, None),
    ]
    assert effect(snapshot) == (0, 3, 0)
    table.compact(full=True)
    assert found(table, "id", "v") == [(1, 2), (2, 21), (3, 31), (4, None)]
    assert sorted(table.scan(["v"], at=1).to_arrow()["v"].to_pylist(), key=str) == [1, 20, 30, None]


def test_an_update_without_a_condition_is_of_all_rows(table: Table) -> None:
    assert effect(table.update({"p": "'x'"})) == (0, 4, 0)
    assert found(table, "p") == [("x",)] * 4


def update_none(table: Table, **options: Any) -> Any:
    return table.update({"v": "0"}, "id > 9", **options)


def merge_none(table: Table, **options: Any) -> Any:
    merge = table.merge(rows((1, "a", 1, None), (9, "a", 9, None)))
    return merge.when_matched_update({"v": "0"}, condition="source.v > target.v").execute(**options)


def upsert_none(table: Table, **options: Any) -> Any:
    return table.merge(rows()).when_matched_update().when_not_matched_insert().execute(**options)


NOTHING = pytest.mark.parametrize("change", [update_none, merge_none, upsert_none])


@NOTHING
def test_what_changes_no_row_leaves_no_snapshot(table: Table, change: Any) -> None:
    assert change(table) is None

    assert [each.id for each in table.history()] == [1]
    assert list(table.commits()) == []


@NOTHING
def test_what_changes_no_row_is_not_done_later_under_its_key(table: Table, change: Any) -> None:
    first = change(table, idempotency_key=("loader", 1))
    table.upsert(rows((10, "a", 1, None)))
    again = change(table, idempotency_key=("loader", 1))

    assert first.summary["rows_written"] == 0
    assert (again.id, again.replayed, first.replayed) == (first.id, True, False)
    assert (10, 1) in found(table, "id", "v")


def test_what_changes_no_row_of_a_table_without_a_key_leaves_no_snapshot(loose: Table) -> None:
    assert loose.update({"v": "0"}, "id > 9") is None

    assert len(loose.history()) == 2


def test_all_sides_of_set_are_as_they_were_before(table: Table) -> None:
    table.update({"v": "cast(d as int)", "d": "v"}, "id = 3")
    assert found(table)[2] == (3, "b", 3, Decimal("30.00"))


def test_a_condition_may_ask_other_tables_and_its_own(lake: Lake, table: Table, parted: Table) -> None:
    parted.delete("id = 1")
    table.update({"v": f"(SELECT max(o.v) FROM {parted.name} o)"}, f"id IN (SELECT id FROM {parted.name})")
    assert found(table, "id", "v") == [(1, 1), (2, 30), (3, 30), (4, 30)]
    lake.sql(f"UPDATE {table.name} AS t SET t.v = 0 WHERE EXISTS (SELECT 1 FROM {table.name} o WHERE o.id = t.id + 3)")
    assert found(table, "id", "v")[0] == (1, 0)


def test_rows_without_a_key_are_updated_in_their_files(lake: Lake, loose: Table) -> None:
    snapshot = loose.update({"v": "v * 2", "p": "'z'"}, "v >= 20 or id = 1")
    assert found(loose, "id", "p", "v") == [(1, "z", 2), (1, "z", 2), (2, "z", 40), (3, "z", 60), (4, None, None)]
    assert (snapshot.kind, effect(snapshot)) == ("replace", (0, 4, 0))
    lake.sql(f"UPDATE {loose.name} SET v = 5 WHERE p = 'z'")
    lake.sql(f"DELETE FROM {loose.name} WHERE id IN (1, 4)")
    assert found(loose, "id", "v") == [(2, 5), (3, 5)]


@pytest.mark.parametrize(
    "change",
    [
        lambda table, other: table.update({"v": "1"}, f"id IN (SELECT id FROM {other})"),
        lambda table, other: table.merge(rows(START[0]), on=["id"]).when_matched_update().execute(),
        lambda table, other: table.merge(rows(START[0])),
    ],
)
def test_rows_without_a_key_are_not_told_apart(loose: Table, table: Table, change: Any) -> None:
    refused(loose, lambda: change(loose, table.name), "no_primary_key")


@pytest.mark.parametrize(
    ("values", "where", "kind"),
    [
        ({"vv": "1"}, None, "unknown_column"),
        ({"v": "vv"}, None, "unknown_column"),
        ({"v": "1"}, "vv = 1", "unknown_column"),
        ({"v": "'a'"}, None, "wrong_type"),
        ({"v": "1 +"}, None, "invalid_sql"),
        ({"v": "1, 2"}, None, "invalid_sql"),
        ({"v": 7}, None, "invalid_sql"),
        ({}, None, "invalid_values"),
        ({"v": "1"}, "v", "unknown_sql"),
        ({"id": "id + 1"}, None, "key_update_refused"),
        ({"v": "v * 1000000000"}, "v > 5", "sql_failed"),
        ({"d": "99999"}, None, "sql_failed"),
        ({"id": "NULL"}, None, "key_update_refused"),
        ({"v": "$x"}, None, "missing_parameter"),
        ({"v": "sum(v)"}, None, None),
        ({"v": "read_text('/etc/passwd')"}, None, "unknown_sql"),
        ({"v": "(SELECT v FROM nowhere.t)"}, None, None),
        ({"v": "1; DROP TABLE x"}, None, "invalid_sql"),
    ],
)
def test_a_wrong_update_changes_nothing(table: Table, values: Any, where: str | None, kind: str | None) -> None:
    refused(table, lambda: table.update(values, where), kind)


@pytest.mark.parametrize("bare", ["late", "too late"])
def test_a_text_without_quotes_is_told_of_them(table: Table, bare: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        table.update({"p": bare}, "id = 1")
    assert "'late'" in raised.value.message
    assert "text" in raised.value.remedy
    assert "quotes" in raised.value.remedy


def refused(table: Table, change: Callable[[], Any], kind: str | None) -> None:
    before, head = found(table), table.head
    with pytest.raises(LakeError) as raised:
        change()
    if kind is not None:
        assert raised.value.kind == kind, raised.value
    assert raised.value.remedy or kind is None, "it says what to do"
    assert (found(table), table.head) == (before, head)


def test_a_partition_is_updated_only_where_a_key_is_in_one(parted: Table, new_table: NewTable) -> None:
    refused(parted, lambda: parted.update({"p": "'b'"}, "id = 1"), "key_update_refused")
    moving = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], cross_partition=True)
    moving.upsert(rows(*START))
    assert effect(moving.update({"p": "'b'", "v": "v + 1"}, "p = 'a'")) == (0, 2, 0)
    assert found(moving, "id", "p", "v") == [(1, "b", 2), (2, "b", 21), (3, "b", 30), (4, None, None)]
    moving.compact(full=True)
    assert found(moving, "id", "p") == [(1, "b"), (2, "b"), (3, "b"), (4, None)]
    assert sorted(each.row_count for each in moving.files()) == [1, 3]


# Merges


def merge(table: Table, *given: tuple[Any, ...], **options: Any) -> Any:
    return table.merge(rows(*given), **options)


def test_a_merge_of_whole_rows_is_an_upsert(table: Table) -> None:
    whole = merge(table, (1, "z", 9, None), (7, "n", 7, None)).when_matched_update().when_not_matched_insert()
    assert "scan of" in str(whole.explain())
    assert table.name not in str(whole.explain()), "nothing of the table is read"
    whole.execute()
    assert found(table) == [(1, "z", 9, None), *START[1:], (7, "n", 7, None)]


def test_the_first_clause_that_is_for_a_row_counts(table: Table) -> None:
    snapshot = (
        merge(table, (1, "s", 5, None), (2, "s", 6, None), (3, "s", 7, None), (8, "n", 1, None), (9, "n", 2, None))
        .when_matched_delete("source.v = 5")
        .when_matched_update({"v": "target.v + source.v", "p": "source.p"}, "source.v <= 6")
        .when_matched_update({"d": "-1"})
        .when_not_matched_insert({"id": "source.id", "v": "v * 10"}, "source.v = 1")
        .when_not_matched_by_source_update({"p": "'left'"}, "target.id > 3")
        .execute()
    )
    assert found(table) == [
        (2, "s", 26, None),
        (3, "b", 30, Decimal("-1.00")),
        (4, "left", None, None),
        (8, None, 10, None),
    ]
    assert (snapshot.kind, effect(snapshot)) == ("upsert", (1, 3, 1))


def test_rows_that_the_source_lacks_are_deleted(table: Table) -> None:
    snapshot = merge(table, START[0], START[1]).when_not_matched_by_source_delete().execute()
    assert (found(table), effect(snapshot)) == (START[:2], (0, 0, 2))
    assert snapshot.kind == "delete"


def test_a_source_without_rows(table: Table) -> None:
    merge(table).when_matched_delete().when_not_matched_insert().execute()
    assert found(table) == START
    merge(table).when_not_matched_by_source_delete("v > 1").execute()
    assert found(table) == [START[0], START[3]]


def test_null_matches_nothing_and_a_condition_that_is_null_is_not_true(table: Table) -> None:
    source = rows((None, "x", 1, None), (4, "x", None, None), schema=pa.schema([f.with_nullable(True) for f in SCHEMA]))
    table.merge(source).when_matched_update({"p": "'hit'"}, "target.v > 0").when_not_matched_insert(
        condition="source.v > 5"
    ).execute()
    assert found(table) == START
    refused(table, lambda: table.merge(source).when_not_matched_insert().execute(), None)


def test_two_rows_of_the_source_for_one_are_refused_by_key(table: Table) -> None:
    twice = ((2, "x", 1, None), (2, "y", 2, None))
    with pytest.raises(InvalidInputError, match=r"the row id 2 of ") as raised:
        merge(table, *twice).when_matched_update().when_not_matched_insert().execute()
    assert raised.value.kind == "ambiguous_source"
    refused(
        table, lambda: merge(table, *twice).when_matched_delete("source.v = 1").when_matched_update().execute(), None
    )
    merge(table, *twice).when_matched_update(condition="source.v = 2").execute()
    assert found(table)[1] == (2, "y", 2, None), "the one for which a clause is counts"
    merge(table, *twice).when_matched_delete().execute()
    assert found(table) == [START[0], *START[2:]]


def test_a_key_is_inserted_once(table: Table, parted: Table) -> None:
    twice = ((8, "x", 1, None), (8, "y", 2, None))
    refused(table, lambda: merge(table, *twice).when_not_matched_insert().execute(), "duplicate_key")
    merge(parted, *twice).when_not_matched_insert().execute()
    assert found(parted, "id", "p")[-2:] == [(8, "x"), (8, "y")], "a key is unique in its partition"


@pytest.mark.parametrize(
    "on",
    [
        "target.id = source.id AND target.p = 'b'",
        "target.id = source.id + 10",
        "target.v = source.v",
        "false",
        "target.id = source.id AND source.v > 100",
    ],
)
def test_a_row_that_is_there_is_not_inserted_over(table: Table, on: str) -> None:
    refused(table, lambda: merge(table, (1, "n", -1, None), on=on).when_not_matched_insert().execute(), "duplicate_key")


def test_a_null_partition_is_one_that_a_key_is_unique_in(parted: Table) -> None:
    change = merge(parted, (4, None, 1, None), on="target.id = source.id and target.p = source.p")
    refused(parted, lambda: change.when_not_matched_insert().execute(), "duplicate_key")
    merge(parted, (4, None, 1, None)).when_matched_update().when_not_matched_insert().execute()
    assert found(parted)[-1] == (4, None, 1, None)


def test_what_is_compared_as_another_type_is_inserted_as_its_own(table: Table) -> None:
    source = pa.table({"id": [Decimal("1.5"), Decimal("9.0")], "v": pa.array([1, 2], pa.int32())})
    values = {"id": "source.id", "v": "source.v"}
    refused(
        table,
        lambda: table.merge(source, "target.id = source.id").when_not_matched_insert(values).execute(),
        "duplicate_key",
    )
    table.merge(source, "target.id = source.id").when_not_matched_insert(values, "source.v = 2").execute()
    assert found(table, "id")[-1] == (9,)


def test_a_key_that_is_converted_to_be_compared_is_found(lake: Lake, table: Table) -> None:
    """As doubles two of these numbers are one."""
    table.upsert(rows((2**53, "x", 0, None), (2**53 + 1, "x", 0, None), (2**53 + 4, "x", 0, None)))
    source = f"(SELECT CAST({2**53} AS DOUBLE) AS id)"
    equal = lake.sql(f"SELECT t.id FROM {table.name} t JOIN {source} s ON t.id = s.id ORDER BY t.id").to_arrow()
    lake.sql(f"MERGE INTO {table.name} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 7")
    assert equal["id"].to_pylist() == [2**53, 2**53 + 1]
    assert [row for row in found(table, "id", "v") if row[0] > 4] == [(2**53, 7), (2**53 + 1, 7), (2**53 + 4, 0)]


def test_many_keys_beyond_the_years_that_python_knows_are_found(new_table: NewTable) -> None:
    table = new_table("id TIMESTAMP, n BIGINT", primary_key=["id"])
    ids = pa.array([2**62 + place for place in range(10_050)], pa.timestamp("us", "UTC"))
    table.upsert(pa.table({"id": ids, "n": pa.array([1] * 10_050)}))
    table.merge(pa.table({"id": ids})).when_matched_update({"n": "target.n + 1"}).execute()
    assert set(table.scan(["n"]).to_arrow()["n"].to_pylist()) == {2}


def test_an_error_names_a_key_beyond_the_years_that_python_knows(new_table: NewTable) -> None:
    table = new_table("id TIMESTAMP, n BIGINT", primary_key=["id"])
    ids = pa.array([2**62] * 2, pa.timestamp("us", "UTC"))
    table.upsert(pa.table({"id": ids[:1], "n": [1]}))
    twice = table.merge(pa.table({"id": ids, "n": [1, 2]})).when_matched_update()
    there = table.merge(pa.table({"id": ids[:1], "n": [2]}), on="target.id = source.id AND target.n = source.n")
    for merging, kind in ((twice, "ambiguous_source"), (there.when_not_matched_insert(), "duplicate_key")):
        with pytest.raises(LakeError, match=r"id 148108-07-06") as raised:
            merging.execute()
        assert raised.value.kind == kind


def test_a_merge_does_not_move_rows(table: Table, parted: Table) -> None:
    by_value = merge(table, (9, "x", 20, None), on="target.v = source.v")
    refused(table, lambda: by_value.when_matched_update().execute(), "key_update_refused")
    by_value.when_matched_update({"p": "source.p"}).execute()
    assert found(table)[1] == (2, "x", 20, None)
    by_id = merge(parted, (1, "b", 9, None), on="id")
    refused(parted, lambda: by_id.when_matched_update().execute(), "key_update_refused")
    by_id.when_matched_update({"v": "source.v"}).execute()
    assert found(parted)[0] == (1, "a", 9, Decimal("1.00"))


def test_a_merge_by_few_keys_reads_no_more_than_it_can_touch(new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], buckets=8)
    for start in range(0, 400, 100):
        table.upsert(rows(*((number, f"p{start}", number, None) for number in range(start, start + 100))))
    few = merge(table, (7, "p0", 1, None)).when_matched_update({"v": "source.v"})
    (scan,) = few.explain().scans
    assert (scan.files, scan.partitions) == (1, 1), scan
    few.execute()
    assert table.scan(["v"], "id = 7").to_arrow()["v"].to_pylist() == [1]
    many = table.merge(table.scan(where="id between 100 and 199").to_arrow(), on="id").when_matched_update({"v": "0"})
    assert effect(many.execute()) == (0, 100, 0)


@pytest.mark.parametrize("key", ["id", "p"], ids=["numbers", "texts"])
def test_a_merge_by_many_keys_takes_their_rows_alone(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(revise_plan, "_MOST_KEYS", 2)
    schema = pa.schema([SCHEMA.field(name).with_nullable(name != key) for name in SCHEMA.names])
    table = new_table(schema, primary_key=[key], buckets=4)
    table.upsert(rows(*((number, f"p{number}", number, None) for number in range(400)), schema=schema))
    table.upsert(rows(*((number, f"p{number}", -number, None) for number in range(0, 400, 5)), schema=schema))
    table.delete("id % 7 = 0")
    source = rows(*((number, f"p{number}", 1, None) for number in (0, 5, 7, 11, 400, 401)), schema=schema)
    merging = table.merge(source).when_matched_update({"v": "target.v * 2 + source.v"})
    assert effect(merging.when_not_matched_insert().execute()) == (4, 2, 0)
    expected = {number: number if number % 5 else -number for number in range(400) if number % 7}
    assert dict(found(table, "id", "v")) == expected | {0: 1, 5: -9, 7: 1, 11: 23, 400: 1, 401: 1}


@pytest.mark.parametrize("limit", ["_MOST_KEYS", "_MOST_HELD", "_MOST_PARTITIONS"])
def test_a_source_with_null_keys_has_no_fewer_others(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    for each, most in {"_MOST_KEYS": 2, "_MOST_HELD": 10, "_MOST_PARTITIONS": 2}.items():
        monkeypatch.setattr(revise_plan, each, most if each == limit else 1_000_000 if each != "_MOST_KEYS" else 2)
    places = limit == "_MOST_PARTITIONS"
    table = new_table("id BIGINT, p STRING, n BIGINT", primary_key=["id"], partition_by=["p"] if places else [])
    table.upsert([{"id": number, "p": f"p{number % 8}", "n": 0} for number in range(400)])
    source = [{"i": None, "q": None}] * 9 + [{"i": number, "q": f"p{number % 8}"} for number in range(8)]
    on = "target.id = source.i" + (" AND target.p = source.q" if places else "")
    assert effect(table.merge(source, on=on).when_matched_update({"n": "1"}).execute()) == (0, 8, 0)


def test_rows_of_a_source_without_a_key_do_not_widen_what_is_read(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revise_plan, "_MOST_KEYS", 5)
    monkeypatch.setattr(revise_plan, "_MOST_PARTITIONS", 5)
    table = new_table("id BIGINT, p STRING, n BIGINT", primary_key=["id"], partition_by=["p"], buckets=8)
    table.upsert([{"id": number, "p": f"p{number % 8}", "n": 0} for number in range(800)])
    nowhere = [{"i": None, "q": f"p{number}", "n": number} for number in range(9)]
    nowhere += [{"i": number, "q": None, "n": number} for number in range(9)]
    one = [{"i": 17, "q": "p1", "n": 7}]

    def merged(rows: list[dict[str, Any]]) -> Any:
        merge = table.merge(rows, on="target.id = source.i AND target.p = source.q")
        return merge.when_matched_update({"n": "source.n"})

    assert [each.files for each in merged(nowhere + one).explain().scans] == [
        each.files for each in merged(one).explain().scans
    ]
    assert effect(merged(nowhere + one).execute()) == (0, 1, 0)


def test_a_column_of_the_key_may_be_asked_twice(new_table: NewTable) -> None:
    table = new_table("a BIGINT, b BIGINT, n BIGINT", primary_key=["a", "b"])
    table.upsert([{"a": number, "b": 0, "n": 0} for number in range(4)])
    source = [{"a": 1, "c": 1}, {"a": 2, "c": 3}]
    changed = table.merge(source, on="target.a = source.a AND target.a = source.c").when_matched_update({"n": "1"})
    assert effect(changed.execute()) == (0, 1, 0)


def test_other_tables_scans_and_results_are_merged(lake: Lake, table: Table, parted: Table) -> None:
    parted.update({"v": "v + 1000"}, "id <= 2")
    for number, source in enumerate(
        (parted, parted.scan(), lake.sql(f"SELECT * FROM {parted.name}"), [{"id": 1, "v": 1001}])
    ):
        table.merge(source, on="id").when_matched_update({"v": f"source.v + {number}"}, "source.v > 1000").execute()
        assert found(table, "id", "v")[0] == (1, 1001 + number)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda m: m, "invalid_merge_into"),
        (lambda m: m.when_matched_delete().when_matched_update({"v": "1"}), "invalid_merge_into"),
        (lambda m: m.when_matched_update({"nope": "1"}), "unknown_column"),
        (lambda m: m.when_matched_update({"v": "other.v"}), "unknown_column"),
        (lambda m: m.when_matched_update({"v": "v"}), "ambiguous_column"),
        (lambda m: m.when_not_matched_insert({"id": "target.id"}), "unknown_column"),
        (lambda m: m.when_not_matched_by_source_update({"v": "source.v"}), "unknown_column"),
        (lambda m: m.when_not_matched_insert({"v": "1"}), "missing_column"),
        (lambda m: m.when_matched_update({"v": "source.p"}), "wrong_type"),
        (lambda m: m.when_matched_update({"d": "source.v * 100000"}), "sql_failed"),
    ],
)
def test_a_wrong_merge_changes_nothing(table: Table, change: Any, kind: str) -> None:
    refused(table, lambda: change(merge(table, (1, "x", 1, None))).execute(), kind)


def test_a_source_that_lacks_columns_sets_none(table: Table) -> None:
    refused(table, lambda: table.merge([{"id": 1}]).when_matched_update().execute(), "missing_column")


# Statements


def test_merge_into_is_sparks(lake: Lake, table: Table, parted: Table) -> None:
    told = (
        lake.sql(
            f"""
        WITH fresh AS (SELECT id + 2 AS id, 'q' AS p, v, d FROM {parted.name} WHERE id <= $most)
        MERGE INTO {table.name} AS t USING (SELECT * FROM fresh) AS s ON t.id = s.id
        WHEN MATCHED AND t.v > s.v THEN UPDATE SET t.v = s.v, p = concat(t.p, s.p)
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED BY TARGET AND s.id < 6 THEN INSERT *
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET d = NULL
        """,
            most=3,
        )
        .to_arrow()
        .to_pylist()
    )
    assert found(table) == [
        (1, "a", 1, None),
        (2, "a", 20, None),
        (3, "bq", 1, Decimal("3.00")),
        (5, "q", 30, Decimal("3.00")),
    ]
    assert [told[0][name] for name in ("statement", "rows_inserted", "rows_updated", "rows_deleted")] == [
        "MERGE",
        1,
        3,
        1,
    ]


def test_statements_are_explained_and_carried_out_once(lake: Lake, table: Table) -> None:
    head = table.head
    for text in (
        f"UPDATE {table.name} SET v = 1 WHERE id = 1",
        f"DELETE FROM {table.name} WHERE id = 1",
        f"DELETE FROM {table.name} WHERE id IN (SELECT max(id) FROM {table.name})",
        f"MERGE INTO {table.name} t USING {table.name} s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ):
        assert table.name in str(lake.sql(f"EXPLAIN {text}").explain())
    assert table.head == head
    options = {"idempotency_key": ("changer", 1)}
    for _ in range(2):
        lake.sql(f"UPDATE {table.name} SET v = v + 1 WHERE id = 1", options)
    assert found(table)[0][2] == 2


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE {} SET v = 1 FROM {} o",
        "UPDATE {} SET v = 1 LIMIT 3",
        "UPDATE {} SET v = 1, V = 2",
        "UPDATE {} SET o.v = 1",
        "UPDATE {} SET v.a = 1",
        "UPDATE {} SET v = 1 WHERE id = 1; DELETE FROM {}",
        "DELETE FROM {} LIMIT 1",
        "DELETE FROM {} WHERE nope = 1",
        "MERGE INTO {} USING {} ON 1 = 1 WHEN MATCHED THEN DELETE",
        "MERGE INTO {} t USING {} s ON t.id = s.id WHEN NOT MATCHED THEN DELETE",
        "MERGE INTO {} t USING {} s ON t.id = s.id WHEN MATCHED THEN INSERT *",
        "MERGE INTO {} t USING {} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1)",
        "MERGE INTO {} t USING nowhere.s s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO {} t USING read_csv('/etc/passwd') s ON true WHEN MATCHED THEN DELETE",
        "DELETE FROM {}$snapshots",
        "DELETE FROM {} FOR VERSION AS OF 1",
    ],
)
def test_what_is_no_such_statement_changes_nothing(lake: Lake, table: Table, text: str) -> None:
    refused(table, lambda: lake.sql(text.replace("{}", table.name)), None)


OF_NO_ROW = (
    "UPDATE {t} SET v = 0 WHERE id > 100",
    "DELETE FROM {t} WHERE id > 100",
    "INSERT INTO {t} SELECT * FROM {t} WHERE id > 100",
    "INSERT OVERWRITE {t} PARTITION (p) SELECT * FROM {t} WHERE false",
)
OF_NO_KEY = (
    "DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE id > 100)",
    "MERGE INTO {t} AS t USING (SELECT 100 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("loose", text) for text in OF_NO_ROW] + [("parted", text) for text in (*OF_NO_ROW, *OF_NO_KEY)],
)
def test_a_statement_that_changes_no_row_publishes_nothing(
    lake: Lake, request: pytest.FixtureRequest, kind: str, text: str
) -> None:
    table: Table = request.getfixturevalue(kind)
    before = table.history()
    (told,) = lake.sql(text.format(t=table.name)).to_arrow().to_pylist()
    assert table.history() == before
    assert (told["snapshot_id"], told["commit_id"], told["rows_written"]) == (None, None, 0)
    assert [told[f"rows_{name}"] for name in ("inserted", "updated", "deleted")] == [0, 0, 0]

    key = {"idempotency_key": ("app", 1)}
    told = [lake.sql(text.format(t=table.name), key).to_arrow().to_pylist()[0] for _ in range(2)]
    assert [each["replayed"] for each in told] == [False, True], "the key is kept"


def test_delete_takes_all_rows_or_those_of_a_condition(lake: Lake, table: Table) -> None:
    lake.sql(f"DELETE FROM {table.name} AS t WHERE t.v > $least", least=5)
    assert found(table) == [START[0], START[3]]
    lake.sql(f"DELETE FROM {table.name}")
    assert found(table) == []


# Other writers, gates, tables of other kinds


def test_what_others_change_meanwhile_is_computed_anew(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [
        lambda: table.upsert(rows((1, "late", 100, None))),
        lambda: table.delete("id = 2"),
        lambda: table.upsert(rows((9, "n", 9, None))),
    ]

    def overtake(catalog: Any, proposal: Proposal) -> None:
        if left and proposal.read_scope.rows_from_base:
            left.pop(0)()

    before_staging(monkeypatch, overtake)
    table.update({"v": "v + 1"})
    assert not left
    assert found(table, "id", "v") == [(1, 101), (3, 31), (4, None), (9, 10)]


def test_a_staged_update_conflicts_with_whatever_came_since(table: Table) -> None:
    staged = table.stage_update({"v": "v + 1"}, "id = 1")
    table.upsert(rows((1, "late", 100, None)))
    with pytest.raises(ConflictError):
        staged.publish()
    assert found(table)[0] == (1, "late", 100, None)
    again = table.stage_update({"v": "v + 1"}, "id = 1")
    table.compact(full=True)
    again.publish()
    assert found(table, "id", "v")[0] == (1, 101)
    merged = merge(table, (1, "z", 9, None)).when_matched_delete().stage()
    assert found(table, "id")[0] == (1,)
    merged.publish()
    assert found(table, "id")[0] == (2,)


SELF_MADE = "(SELECT id, p, v + 1 AS v, d FROM {name} WHERE id < 4)"
WHOLE_ROWS = "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


@pytest.mark.parametrize(
    "text",
    [
        f"MERGE INTO {{name}} AS t USING {SELF_MADE} AS s {WHOLE_ROWS}",
        f"WITH s AS {SELF_MADE} MERGE INTO {{name}} AS t USING s {WHOLE_ROWS}",
        f"INSERT INTO {{name}} {SELF_MADE}",
    ],
)
def test_rows_that_are_made_of_the_tables_own_are_not_upserted_over_later_ones(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    left = [lambda: table.upsert(rows((1, "late", 100, None))), lambda: table.delete("id = 2")]

    def overtake(catalog: Any, proposal: Proposal) -> None:
        if left and proposal.read_scope.rows_from_base:
            left.pop(0)()

    before_staging(monkeypatch, overtake)
    lake.sql(text.format(name=table.name))
    assert not left
    assert found(table, "id", "v") == [(1, 101), (3, 31), (4, None)]


@pytest.mark.parametrize(
    "text",
    [
        "MERGE INTO {t} t USING {s} s ON t.id = s.id AND t.v > 9 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 1)",
        "INSERT INTO {t} (id, v) SELECT id, v FROM {s}",
        "UPDATE {t} SET v = v + (SELECT count(*) FROM {s})",
        "DELETE FROM {t} WHERE id NOT IN (SELECT id FROM {s})",
        "INSERT OVERWRITE {t} (id, v) SELECT id, v + 1 FROM {s}",
    ],
)
def test_a_statement_that_was_carried_out_is_not_looked_at_again(
    lake: Lake, table: Table, new_table: NewTable, text: str
) -> None:
    """Its source may be gone by then, and what it has brought be in its way."""
    source = new_table(SCHEMA, primary_key=["id"])
    source.upsert(rows((9, "s", 9, None)))
    text, options = text.format(t=table.name, s=source.name), {"idempotency_key": ("nightly", 3)}
    first = lake.sql(text, options).to_arrow().to_pylist()
    after = found(table)
    for there in (True, False):
        if not there:
            lake.drop_table(source.name)
        assert lake.sql(text, options).to_arrow().to_pylist() == [{**first[0], "replayed": True}]
        with lake.transaction() as tx:
            (told,) = tx.sql(text, options).to_arrow().to_pylist()
            tx.sql(f"UPDATE {table.name} SET p = 'behind' WHERE id = 9", {"idempotency_key": ("behind", 1)})
        assert (told["snapshot_id"], tx.snapshots[0].id) == (first[0]["snapshot_id"],) * 2
    assert [(id, v) for id, _, v, _ in after] == found(table, "id", "v")
    assert len(table.history()) == 3


def test_increments_of_several_threads_all_count(table: Table) -> None:
    def increment(_: int) -> None:
        for _ in range(8):
            table.update({"v": "v + 1"}, "id = 1")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(increment, range(3)))
    assert found(table, "id", "v")[0] == (1, 25)


def test_a_gate_judges_what_a_change_brings(table: Table) -> None:
    suite = parse_suite(
        "name: small\nexpectations:\n- {type: expect_column_values_to_be_between, kwargs: {column: v, max_value: 50}}\n"
    )
    table.require_gate(suite, by="ada")
    with pytest.raises(RejectedError):
        table.update({"v": "v * 2"}, "id = 3")
    assert found(table) == START
    table.update({"v": "v * 2"}, "id = 2")
    with pytest.raises(RejectedError):
        merge(table, (1, "x", 51, None)).when_matched_update({"v": "source.v"}).execute()
    assert found(table, "id", "v") == [(1, 1), (2, 40), (3, 30), (4, None)]


SEQUENCED = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("at", pa.timestamp("us", "UTC"))])
NOON, LATER = datetime(2026, 11, 18, 12, tzinfo=UTC), datetime(2026, 11, 18, 13, tzinfo=UTC)


def test_a_change_wins_over_the_row_that_it_was_made_from(new_table: NewTable) -> None:
    table = new_table(SEQUENCED, primary_key=["id"], sequence_by=["at"])
    table.upsert(rows((1, 1, NOON), (2, 2, None), schema=SEQUENCED))
    table.update({"v": "v + 10"})
    assert found(table, "id", "v") == [(1, 11), (2, 12)], "with the sequence that it had it is the later one"
    refused(table, lambda: table.update({"at": "at - INTERVAL 1 HOUR"}, "id = 1"), "older_row")
    refused(table, lambda: table.update({"at": "NULL"}, "id = 1"), "older_row")
    table.update({"at": "$later"}, parameters={"later": LATER})
    table.upsert(rows((1, 99, NOON), schema=SEQUENCED))
    assert found(table, "id", "v") == [(1, 11), (2, 12)]
    whole = table.merge(rows((1, 5, NOON), schema=SEQUENCED)).when_matched_update().when_not_matched_insert()
    refused(table, whole.execute, "older_row")
    table.merge(rows((1, 5, NOON), schema=SEQUENCED)).when_matched_delete().execute()
    table.upsert(rows((1, 98, NOON), schema=SEQUENCED))
    assert found(table, "id", "v") == [(2, 12)], "what is deleted stays so for rows that are older"
    table.compact(full=True)
    assert found(table, "id", "v") == [(2, 12)]


FILLED = "id BIGINT, a INT, b INT, s BIGINT, g INT"


@pytest.fixture
def filled(new_table: NewTable) -> Table:
    merge_engine = {"engine": "partial_update", "groups": [{"sequence": ["s"], "columns": ["g"]}]}
    table = new_table(FILLED, primary_key=["id"], merge=merge_engine)
    table.upsert([{"id": 1, "a": 1, "b": 2, "s": 5, "g": 6}], explicit_cast=True)
    table.upsert([{"id": 2, "a": 1}], explicit_cast=True)
    return table


def test_a_row_of_partial_updates_is_what_was_computed_or_nothing(filled: Table) -> None:
    filled.update({"a": "a + b", "g": "g + 1"}, "id = 1")
    assert found(filled)[0] == (1, 3, 2, 5, 7)
    filled.update({"s": "s + 1", "g": "NULL"}, "id = 1")
    assert found(filled)[0] == (1, 3, 2, 6, None)
    for values in ({"a": "NULL"}, {"s": "s - 1", "g": "1"}, {"s": "NULL", "g": "1"}):
        refused(filled, lambda values=values: filled.update(values, "id = 1"), None)
    refused(filled, lambda: filled.update({"g": "1"}, "id = 2"), "update_refused")
    filled.update({"b": "NULL", "a": "9"}, "id = 2")
    filled.compact(full=True)
    assert found(filled) == [(1, 3, 2, 6, None), (2, 9, None, None, None)]


@pytest.mark.parametrize("merge", ["first_row", {"engine": "aggregate", "functions": {"v": "sum"}}])
def test_what_is_merged_with_what_was_there_is_not_updated(new_table: NewTable, merge: Any) -> None:
    table = new_table("id BIGINT, v BIGINT", primary_key=["id"], merge=merge)
    table.upsert([{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    refused(table, lambda: table.update({"v": "v + 1"}), "update_refused")
    source = [{"id": 1, "v": 5}, {"id": 3, "v": 3}]
    refused(table, lambda: table.merge(source).when_matched_update().execute(), "update_refused")
    table.merge(source).when_matched_delete().when_not_matched_insert().execute()
    assert found(table) == [(2, 2), (3, 3)]
    table.upsert([{"id": 1, "v": 7}])
    assert found(table) == [(1, 7), (2, 2), (3, 3)]


def test_deletes_that_take_no_row_away_are_left_to_delete(lake: Lake, new_table: NewTable) -> None:
    merge_engine = {
        "engine": "partial_update",
        "groups": [{"sequence": ["s"], "columns": ["g"]}],
        "on_delete": "groups",
    }
    table = new_table(FILLED, primary_key=["id"], merge=merge_engine)
    table.upsert([{"id": 1, "a": 1, "b": 2, "s": 5, "g": 6}], explicit_cast=True)
    refused(table, lambda: table.merge([{"id": 1}]).when_matched_delete().execute(), "deletes_refused")
    lake.sql(f"DELETE FROM {table.name} WHERE id = 1")
    assert found(table) == [(1, 1, 2, None, None)] or found(table) == [(1, 1, 2, 5, None)]


def test_values_of_all_kinds_stay_what_they_are(new_table: NewTable) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("n", pa.int32()),
            ("f", pa.float64()),
            ("at", pa.timestamp("us", "UTC")),
            ("naive", pa.timestamp("us")),
            ("raw", pa.binary()),
            ("wide", pa.decimal128(38, 10)),
            ("list", pa.list_(pa.struct([("t", pa.timestamp("us", "UTC")), ("x", pa.float32())]))),
            ("map", pa.map_(pa.string(), pa.list_(pa.int64()))),
            ("day", pa.date32()),
        ]
    )
    row = (
        1, 1, -0.0, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31), b"\x00\xff",
        Decimal("9999999999999999999999999999.9999999999"),
        [{"t": NOON, "x": 1.5}, None, {"t": None, "x": float("inf")}], [("k", [1, None]), ("", None)], date(1, 1, 1),
    )  # fmt: skip
    table = new_table(schema, primary_key=["id"])
    table.upsert(rows(row, (2, 1, float("-inf"), *([None] * 7)), schema=schema))
    before = table.scan().to_arrow()
    table.update({"n": "n"})
    table.merge(before).when_matched_update(condition="source.id = 1").when_matched_update({"n": "source.n"}).execute()
    assert table.scan().to_arrow().equals(before)
    assert str(table.scan(["f"]).to_arrow()["f"].to_pylist()[0]) == "-0.0"


def test_a_table_that_is_not_there(lake: Lake) -> None:
    for text in (
        "UPDATE x.y SET a = 1",
        "DELETE FROM x.y",
        "MERGE INTO x.y USING x.z s ON true WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(NotFoundError):
            lake.sql(text)
