"""Predicates of very many values, of none that can match, and on the commit of rows that have none yet."""

import pyarrow as pa
import pytest

from lakelib import Table
from tests.acceptance.support import Engine, NewTable, data, in_process, rows_of
from tests.conftest import WHOLE_MATRICES

SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string()), ("v", pa.int64())])
MANY = 66_000
"""More than PostgreSQL takes parameters."""


@pytest.fixture(params=[["id"], []], ids=["keyed", "append"])
def table(request: pytest.FixtureRequest, engine: Engine, new_table: NewTable) -> Table:
    """Four rows of two regions, merged by key or not."""
    table = new_table(SCHEMA, primary_key=request.param, partition_by=["region"])
    rows = data(SCHEMA, (1, "n", 1), (2, "n", 2), (200_000, "s", 3), (300_000, "s", None))
    engine.write(table, "upsert" if request.param else "append", rows)
    return table


def test_very_many_values_are_no_failure_of_the_catalog(engine: Engine, new_table: NewTable) -> None:
    check_long(engine, new_table, f"id in ({', '.join(map(str, range(2, MANY)))})", [2])


@in_process
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        pytest.param(f"id not in ({', '.join(map(str, range(2, MANY)))})", [1, 200_000, 300_000], id="not in"),
        pytest.param(
            " or ".join(f"id={number} and region='n'" for number in range(2, MANY // 2 + 100)), [2], id="pairs"
        ),
        *(
            [
                pytest.param(" or ".join(f"id={number}" for number in range(2, MANY)), [2], id="or"),
                pytest.param(
                    " and ".join(f"id<>{number}" for number in range(2, MANY)), [1, 200_000, 300_000], id="and"
                ),
            ]
            if WHOLE_MATRICES  # of these the parser makes lists
            else []
        ),
    ],
)
def test_very_many_conditions_are_no_failure_of_the_catalog(
    engine: Engine, new_table: NewTable, where: str, expected: list[int]
) -> None:
    check_long(engine, new_table, where, expected)


def check_long(engine: Engine, new_table: NewTable, where: str, expected: list[int]) -> None:
    table = new_table(SCHEMA, primary_key=["id"], partition_by=["region"])
    engine.write(table, "upsert", data(SCHEMA, (1, "n", 1), (2, "n", 2), (200_000, "s", 3), (300_000, "s", None)))
    assert rows_of(engine, table.scan(columns=["id"], where=where)) == [(number,) for number in expected]


@pytest.mark.parametrize("where", ["false", "region = 'n' and null", "v > 99999999999999999999 and id = 1"])
def test_what_no_row_can_match_is_not_said_to_be_pruned_by_another_rule(table: Table, where: str) -> None:
    found = table.scan(where=where).explain()
    assert [(pruning.rule, pruning.files_pruned) for pruning in found.pruned] == [
        ("a predicate that no row can match", found.files_total)
    ]


def test_keys_that_exclude_each_other_are_not_said_to_be_pruned_by_hash(engine: Engine, new_table: NewTable) -> None:
    table = new_table(SCHEMA, primary_key=["id"])
    engine.write(table, "upsert", data(SCHEMA, (1, "n", 1)))
    assert "1 file by a predicate that no row can match" in str(table.scan(where="id = 1 and id = 2").explain())


@in_process
def test_one_file_is_one_file(engine: Engine, table: Table) -> None:
    shown = str(table.scan(where="region = 'n'").explain())
    assert "1 file by partition values" in shown
    assert "1 files" not in shown


def test_a_staged_row_has_no_commit_yet(engine: Engine, table: Table) -> None:
    """Comparing it gives NULL, whatever the number."""
    stage = table.stage_upsert if table.primary_key else table.stage_append
    staged = stage(data(SCHEMA, (7, "n", 7)))
    for scope, published in (("staged", []), ("merged", [(1,), (2,), (200_000,), (300_000,)])):
        for where, expected in (
            ("_commit < 99999999999999999999", published),
            ("_commit < 5", published),
            ("not (_commit > 99999999999999999999)", published),
            ("_commit is not null", published),
            ("_commit is null", [(7,)]),
            ("_commit <=> 1", published),
        ):
            assert rows_of(engine, staged.scan(scope=scope, columns=["id"], where=where)) == expected, (scope, where)
    staged.reject("seen")
