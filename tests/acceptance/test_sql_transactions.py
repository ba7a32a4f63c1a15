"""Statements of SQL in a transaction: all of them, over all tables, are seen in one instant or never."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from lakelib import ConflictError, InvalidInputError, Lake, RejectedError, Table
from lakelib.specs.suite import Suite, parse_suite
from tests.acceptance.support import NewTable

SCHEMA = "id BIGINT NOT NULL, n INT, p STRING"


@pytest.fixture
def orders(new_table: NewTable) -> Table:
    return new_table(SCHEMA, primary_key=["id"])


@pytest.fixture
def lines(new_table: NewTable) -> Table:
    return new_table(SCHEMA, partition_by=["p"])


def rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=repr)


def states(table: Table) -> list[str]:
    return [each.state for each in table.commits(["staged", "rejected", "published", "expired"])]


def carry_out(lake: Lake, *statements: str) -> None:
    with lake.transaction() as tx:
        for each in statements:
            tx.sql(each)


def positive(name: str) -> Suite:
    check = "{type: expect_column_values_to_be_between, kwargs: {column: n, min_value: 1}, scope: table}"
    return parse_suite(f"name: {name}\nexpectations:\n- {check}\n")


def test_statements_over_several_tables_are_published_at_once(lake: Lake, orders: Table, lines: Table) -> None:
    with lake.transaction() as tx:
        (told,) = tx.sql(f"INSERT INTO {orders.name} VALUES (1, 1, 'a'), (2, 2, 'a')").to_arrow().to_pylist()
        tx.sql(f"INSERT INTO {lines.name} VALUES (1, $n, 'a')", {"properties": {"run": "r"}}, n=7)
        assert (orders.head, lines.head) == (None, None)

    assert (rows(orders), rows(lines)) == ([(1, 1, "a"), (2, 2, "a")], [(1, 7, "a")])
    assert (told["snapshot_id"], told["commit_id"]) == (None, str(tx.snapshots[0].commit_id))
    assert (told["rows_written"], told["replayed"]) == (2, None)
    assert tx.snapshots[1].properties == {"run": "r"}


def test_a_statement_sees_what_those_before_it_have_staged(lake: Lake, orders: Table, lines: Table) -> None:
    lake.sql(f"INSERT INTO {orders.name} VALUES (1, 1, 'old'), (3, 3, 'old')")
    with lake.transaction() as tx:
        tx.sql(f"INSERT INTO {orders.name} VALUES (1, 10, 'new'), (2, 20, 'new')")
        tx.sql(f"INSERT INTO {orders.name} SELECT id, n + 1, p FROM {orders.name} WHERE p = 'new'")
        tx.sql(f"INSERT INTO {lines.name} SELECT * FROM {orders.name}")
        assert tx.sql(f"SELECT sum(n) AS n FROM {lines.name}").to_arrow().to_pylist() == [{"n": 11 + 21 + 3}]
        assert lake.sql(f"SELECT sum(n) AS n FROM {orders.name}").to_arrow().to_pylist() == [{"n": 4}]

    assert rows(orders) == rows(lines) == [(1, 11, "new"), (2, 21, "new"), (3, 3, "old")]
    assert [each.id for each in tx.snapshots] == [2, 3, 1]


def test_what_comes_behind_the_block_is_refused(lake: Lake, orders: Table) -> None:
    with lake.transaction() as tx:
        tx.sql(f"INSERT INTO {orders.name} VALUES (1, 1, 'a')")
    staged = orders.stage_delete("true")
    for late in (lambda: tx.sql(f"INSERT INTO {orders.name} VALUES (2, 2, 'a')"), lambda: tx.add(staged)):
        with pytest.raises(InvalidInputError, match="has ended"):
            late()
    assert rows(orders) == [(1, 1, "a")]


@pytest.mark.parametrize("where", ["p = 'a'", "p = 'a' AND id IN (SELECT id FROM {orders})"])
def test_what_comes_while_rows_are_moved_is_not_lost(lake: Lake, orders: Table, lines: Table, where: str) -> None:
    """What one statement has not copied the next one does not delete."""
    lake.sql(f"INSERT INTO {orders.name} VALUES (1, 1, 'a'), (2, 2, 'b')")
    tx = lake.transaction()
    tx.__enter__()
    tx.sql(f"INSERT INTO {lines.name} SELECT * FROM {orders.name} WHERE p = 'a'")
    lake.sql(f"INSERT INTO {orders.name} VALUES (3, 3, 'a')")
    assert tx.sql(f"SELECT id FROM {orders.name}").count() == 2
    tx.sql(f"DELETE FROM {orders.name} WHERE {where.format(orders=orders.name)}")
    with pytest.raises(ConflictError):
        tx.__exit__(None, None, None)
    assert (rows(orders), rows(lines)) == ([(1, 1, "a"), (2, 2, "b"), (3, 3, "a")], [])


def test_rows_are_moved_beside_others_that_come_elsewhere(lake: Lake, lines: Table, orders: Table) -> None:
    lake.sql(f"INSERT INTO {lines.name} VALUES (1, 1, 'a'), (2, 2, 'b')")
    with lake.transaction() as tx:
        tx.sql(f"INSERT INTO {orders.name} SELECT * FROM {lines.name} WHERE p = 'a'")
        lake.sql(f"INSERT INTO {lines.name} VALUES (3, 3, 'b')")
        tx.sql(f"DELETE FROM {lines.name} WHERE p = 'a'")
        lake.sql(f"INSERT INTO {lines.name} VALUES (4, 4, 'b')")
        lines.compact(full=True)
    assert (rows(lines), rows(orders)) == ([(2, 2, "b"), (3, 3, "b"), (4, 4, "b")], [(1, 1, "a")])


def test_an_error_in_the_block_leaves_nothing(lake: Lake, orders: Table, lines: Table) -> None:
    with pytest.raises(InvalidInputError):
        carry_out(lake, f"INSERT INTO {orders.name} VALUES (1, 1, 'a')", f"INSERT INTO {lines.name} VALUES (1)")
    assert (orders.head, states(orders), states(lines)) == (None, ["expired"], [])


@pytest.mark.parametrize("text", [
    "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 1", "INSERT OVERWRITE {t} VALUES (1, 2, 'a')",
    "INSERT OVERWRITE {t} PARTITION (p) VALUES (1, 2, 'a')", "INSERT OVERWRITE {t} PARTITION (p = 'a') (id) VALUES (1)",
])  # fmt: skip
def test_what_one_statement_changes_another_cannot_replace(lake: Lake, orders: Table, lines: Table, text: str) -> None:
    with lake.transaction() as tx:
        tx.sql(f"INSERT INTO {lines.name} VALUES (1, 1, 'a')")
        tx.sql(f"INSERT INTO {orders.name} VALUES (1, 1, 'a')")
        with pytest.raises(ConflictError, match="a statement before it in the transaction has changed"):
            tx.sql(text.format(t=lines.name))
    assert (rows(lines), rows(orders)) == ([(1, 1, "a")], [(1, 1, "a")])
    assert states(lines) == ["expired", "published"]


@pytest.mark.parametrize("statements", [
    ("OVERWRITE {t} PARTITION (p = 'a') (id, n) VALUES (5, 5)", "INTO {t} VALUES (6, 6, 'a')"),
    ("OVERWRITE {t} PARTITION (p = 'a') (id, n) SELECT 5, 5", "OVERWRITE {t} PARTITION (p = 'b') (id, n) SELECT 6, 6"),
    ("INTO {t} VALUES (5, 5, 'a')", "OVERWRITE {t} PARTITION (p = 'b') (id, n) VALUES (6, 6)"),
])  # fmt: skip
def test_statements_that_do_not_depend_on_each_other_may_change_one_table(
    lake: Lake, lines: Table, new_table: NewTable, statements: Sequence[str]
) -> None:
    other = new_table(SCHEMA, partition_by=["p"])
    for table in (lines, other):
        lake.sql(f"INSERT INTO {table.name} VALUES (1, 1, 'a'), (2, 2, 'b')")
    with lake.transaction() as tx:
        for each in statements:
            tx.sql(f"INSERT {each.format(t=lines.name)}")
    for each in statements:
        lake.sql(f"INSERT {each.format(t=other.name)}")
    assert rows(lines) == rows(other)


CHANGES = (
    "INSERT INTO {t} VALUES (1, 10, 'a'), (4, 40, 'b'), (5, 50, 'b')",
    "UPDATE {t} SET n = n + 1 WHERE id > 1",
    "DELETE FROM {t} WHERE id = 4",
    "DELETE FROM {t} WHERE n IN (SELECT max(n) FROM {t})",
    "MERGE INTO {t} t USING (SELECT id + 1 AS id, n, p FROM {t}) s ON t.id = s.id"
    " WHEN MATCHED AND t.n > 20 THEN DELETE WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO {t} SELECT id + 100, n, p FROM {t}",
    "UPDATE {t} SET n = 0 WHERE NOT EXISTS (SELECT 1 FROM {t} o WHERE o.id = {t}.id - 1)",
)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["keyed", "sequence", "moving"])
def test_statements_that_depend_on_each_other_do_what_they_do_one_by_one(
    lake: Lake, new_table: NewTable, kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    more = {
        "keyed": {"buckets": 2},
        "sequence": {"sequence_by": ["n"], "partition_by": ["p"]},
        "moving": {"partition_by": ["p"], "cross_partition": True},
    }[kind]
    table, twin = (new_table(SCHEMA, primary_key=["id"], **more) for _ in range(2))
    first = "INSERT INTO {t} VALUES (1, 1, 'a'), (2, 2, 'a'), (3, 3, 'b')"
    moves = ("UPDATE {t} SET p = 'c' WHERE n > 2",) if kind == "moving" else ()
    known = [each for each in CHANGES if kind != "sequence" or "n = 0" not in each] + [*moves]
    statements = [each.replace("{t}.id", "t.id").replace("UPDATE {t}", "UPDATE {t} t") for each in known]
    chosen = chance.sample(statements, 4)
    for each in (table, twin):
        lake.sql(first.replace("{t}", each.name))
    with lake.transaction() as tx:
        for each in chosen:
            tx.sql(each.replace("{t}", table.name))
    for each in chosen:
        lake.sql(each.replace("{t}", twin.name))
    assert rows(table) == rows(twin), chosen
    table.compact(full=True)
    assert rows(table) == rows(twin), chosen


def test_what_a_statement_was_made_from_is_published_with_it_or_nothing(lake: Lake, orders: Table) -> None:
    lake.sql(f"INSERT INTO {orders.name} VALUES (1, 1, 'a')")
    tx = lake.transaction()
    tx.__enter__()
    tx.sql(f"INSERT INTO {orders.name} VALUES (2, 2, 'a')")
    tx.sql(f"UPDATE {orders.name} SET n = n * 10")
    first, second = (lake.staged(each.id) for each in reversed(orders.commits()))
    with pytest.raises(ConflictError):
        second.publish()
    assert rows(orders) == [(1, 1, "a")]
    first.reject("no")
    with pytest.raises((ConflictError, RejectedError)):
        tx.__exit__(None, None, None)
    assert rows(orders) == [(1, 1, "a")]


def test_a_key_that_moves_is_seen_once_within_a_transaction(lake: Lake, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["p"], cross_partition=True)
    seen = []
    with lake.transaction() as tx:
        for text in (
            "INSERT INTO {t} VALUES (1, 1, 'a'), (2, 2, 'a')",
            "UPDATE {t} SET p = 'b'",
            "INSERT INTO {t} VALUES (2, 3, 'c'), (3, 3, NULL)",
            "DELETE FROM {t} WHERE id = 1",
            "UPDATE {t} SET n = n + 1, p = 'a'",
        ):
            tx.sql(text.format(t=table.name))
            found = tx.sql(f"SELECT id, n FROM {table.name} ORDER BY id, n").to_arrow().to_pylist()
            seen.append([(row["id"], row["n"]) for row in found])
    assert seen == [
        [(1, 1), (2, 2)],
        [(1, 1), (2, 2)],
        [(1, 1), (2, 3), (3, 3)],
        [(2, 3), (3, 3)],
        [(2, 4), (3, 4)],
    ]
    assert rows(table) == [(2, 4, "a"), (3, 4, "a")]
    table.compact(full=True)
    assert rows(table) == [(2, 4, "a"), (3, 4, "a")]


@pytest.mark.parametrize("text", ["UPDATE {0} SET n = n * 10", "INSERT INTO {0} SELECT id, n * 10, p FROM {0}"])
def test_what_others_write_beside_a_transaction_that_depends_on_it_is_a_conflict(
    lake: Lake, orders: Table, text: str
) -> None:
    lake.sql(f"INSERT INTO {orders.name} VALUES (1, 1, 'a')")
    tx = lake.transaction()
    tx.__enter__()
    tx.sql(f"INSERT INTO {orders.name} VALUES (2, 2, 'a')")
    tx.sql(text.format(orders.name))
    lake.sql(f"INSERT INTO {orders.name} VALUES (3, 3, 'a')")
    with pytest.raises(ConflictError):
        tx.__exit__(None, None, None)
    assert rows(orders) == [(1, 1, "a"), (3, 3, "a")]


def test_a_key_that_a_statement_before_has_inserted_is_there(lake: Lake, orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="has one of that key"):
        carry_out(
            lake,
            f"INSERT INTO {orders.name} VALUES (1, 1, 'a')",
            f"MERGE INTO {orders.name} t USING (SELECT 1 AS id) s ON t.id = s.id AND t.n = 7"
            " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        )
    assert orders.head is None


def test_a_conflict_with_others_leaves_nothing(lake: Lake, orders: Table, lines: Table) -> None:
    lake.sql(f"INSERT INTO {lines.name} VALUES (1, 1, 'a')")
    tx = lake.transaction()
    tx.__enter__()
    tx.sql(f"INSERT INTO {orders.name} VALUES (1, 1, 'a')")
    tx.sql(f"INSERT OVERWRITE {lines.name} SELECT id + 1, n, p FROM {lines.name}")
    lake.sql(f"INSERT INTO {lines.name} VALUES (2, 2, 'b')")
    with pytest.raises(ConflictError):
        tx.__exit__(None, None, None)
    assert (rows(orders), rows(lines)) == ([], [(1, 1, "a"), (2, 2, "b")])
    assert "staged" not in states(orders) + states(lines)


def test_a_gate_judges_each_statement_on_top_of_those_before(lake: Lake, orders: Table, lines: Table) -> None:
    orders.require_gate(positive(f"gate_{orders.name}"))
    with lake.transaction() as tx:
        tx.sql(f"INSERT INTO {lines.name} VALUES (1, -1, 'a')")
        tx.sql(f"INSERT INTO {orders.name} VALUES (1, 1, 'a')")
        tx.sql(f"INSERT INTO {orders.name} VALUES (2, 1, 'a')")
    assert len(rows(orders)) == 2

    with pytest.raises(RejectedError):
        carry_out(lake, f"INSERT INTO {lines.name} VALUES (2, 1, 'a')", f"INSERT INTO {orders.name} VALUES (3, 0, 'a')")
    assert (len(rows(orders)), len(rows(lines)), states(orders)[0]) == (2, 1, "rejected")


def test_a_transaction_with_keys_happens_once(lake: Lake, orders: Table, lines: Table) -> None:
    for _ in range(2):
        with lake.transaction() as tx:
            for table in (orders, lines):
                tx.sql(f"INSERT INTO {table.name} VALUES (1, 1, 'a')", {"idempotency_key": ("nightly", 1)})
    assert (rows(orders), rows(lines)) == ([(1, 1, "a")], [(1, 1, "a")])
    assert [each.replayed for each in tx.snapshots] == [True, True]


def test_staged_commits_and_statements_go_together(lake: Lake, orders: Table, lines: Table) -> None:
    staged = orders.stage_upsert({"id": [1], "n": [1], "p": ["a"]}, explicit_cast=True)
    with lake.transaction() as tx:
        tx.add(staged)
        tx.sql(f"INSERT INTO {lines.name} SELECT * FROM {orders.name}")
    assert rows(orders) == rows(lines) == [(1, 1, "a")]


def test_an_overwrite_of_a_table_by_itself_loses_nothing_of_what_others_write(lake: Lake, lines: Table) -> None:
    """What comes between its look and its commit is looked at, too."""
    from lakelib.ops import overwrite

    lake.sql(f"INSERT INTO {lines.name} VALUES (1, 1, 'a')")
    written = overwrite.write_rows
    comes = iter([True])

    def beside(*arguments: Any, **options: Any) -> Any:
        found = written(*arguments, **options)
        if next(comes, False):
            lines.append({"id": [2], "n": [2], "p": ["b"]}, explicit_cast=True)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overwrite, "write_rows", beside)
        lake.sql(f"INSERT OVERWRITE {lines.name} SELECT id, n * 10, p FROM {lines.name}")
    assert rows(lines) == [(1, 10, "a"), (2, 20, "b")]
