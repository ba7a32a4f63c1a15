"""A small write goes by what its process remembers of the table.

Whatever others have made of that since, it does what it would have done by asking first."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.ops import runtime
from lakelib.ops.runtime import KnownTables
from tests.integration.faults.jobs import SCHEMA, rows

_SUITE = """
name: few
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: value, max_value: 10}
"""


@pytest.fixture
def table(lake: lakelib.Lake) -> lakelib.Table:
    """A row, and two that follow."""
    table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], partition_by=["day"])
    table.upsert(rows({1: ("mon", 1)}))
    return table


@pytest.fixture
def others(lake: lakelib.Lake) -> Iterator[lakelib.Lake]:
    """Another process's connection to the lake."""
    with lakelib.connect(warehouse=lake.warehouse, catalog=lake.settings.catalog) as found:
        yield found


@pytest.fixture
def known_table(table: lakelib.Table) -> lakelib.Table:
    """One that this process has just written to."""
    table.upsert(rows({2: ("mon", 2)}))
    return table


def test_it_asks_once(known_table: lakelib.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    execute = psycopg.Cursor.execute

    def listen(self: Any, query: Any, *given: Any, **options: Any) -> Any:
        asked.append(query)
        return execute(self, query, *given, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", listen)
    known_table.upsert(rows({3: ("mon", 3)}))
    assert len(asked) == 1
    assert known_table.head is not None
    assert known_table.head.id == 3


def test_a_column_that_others_have_added_is_written(known_table: lakelib.Table, others: lakelib.Lake) -> None:
    others.table(known_table.name).evolve(add="note STRING")
    known_table.upsert(rows({3: ("mon", 3)}).append_column("note", pa.array(["x"])))
    known_table.upsert(rows({4: ("mon", 4)}))
    found = known_table.scan(columns=["id", "note"], where="id > 2").to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [{"id": 3, "note": "x"}, {"id": 4, "note": None}]


def test_a_name_means_what_it_means_now(known_table: lakelib.Table, others: lakelib.Lake) -> None:
    """What was `value` is `old` by now, and another column is `value`."""
    others.table(known_table.name).evolve(rename={"value": "old"})
    others.table(known_table.name).evolve(add="value BIGINT")
    known_table.upsert(rows({3: ("mon", 3)}))
    found = known_table.scan(columns=["old", "value"], where="id = 3").to_arrow().to_pylist()
    assert found == [{"old": None, "value": 3}]


def test_a_name_that_is_gone_is_refused(known_table: lakelib.Table, others: lakelib.Lake) -> None:
    others.table(known_table.name).evolve(rename={"value": "amount"})
    with pytest.raises(lakelib.InvalidInputError) as refused:
        known_table.upsert(rows({3: ("mon", 3)}))
    assert "value" in str(refused.value)
    assert known_table.scan().count() == 2


def test_options_that_others_have_set_are_kept(known_table: lakelib.Table, others: lakelib.Lake) -> None:
    others.table(known_table.name).set_options({"compression": "none"})
    known_table.upsert(rows({3: ("mon", 3)}))
    assert known_table.options["compression"] == "none"
    assert _left_over(known_table) == set()


def test_a_gate_that_is_required_by_now_judges(
    known_table: lakelib.Table, others: lakelib.Lake, tmp_path: Path
) -> None:
    (tmp_path / "few.yaml").write_text(_SUITE)
    others.register_gate(tmp_path / "few.yaml")
    others.table(known_table.name).require_gate("few")
    known_table.upsert(rows({3: ("mon", 3)}))
    with pytest.raises(lakelib.RejectedError):
        known_table.upsert(rows({4: ("mon", 40)}))
    assert known_table.scan().count() == 3


def test_a_suite_that_fits_by_now_judges(known_table: lakelib.Table, others: lakelib.Lake, tmp_path: Path) -> None:
    """It looks at a column that others have added."""
    (tmp_path / "few.yaml").write_text(_SUITE.replace("column: value", "column: more"))
    others.table(known_table.name).evolve(add="more INT")
    known_table.upsert(rows({3: ("mon", 3)}), gate=tmp_path / "few.yaml")
    assert known_table.scan().count() == 3


def test_a_gate_that_another_has_released_by_now_is_not_missed(
    known_table: lakelib.Table, others: lakelib.Lake, tmp_path: Path
) -> None:
    (tmp_path / "few.yaml").write_text(_SUITE)
    (tmp_path / "other.yaml").write_text(_SUITE.replace("name: few", "name: other"))
    known_table.require_gate(tmp_path / "few.yaml")
    known_table.upsert(rows({3: ("mon", 3)}))
    others.table(known_table.name).release_gate(by="ada", reason="checked elsewhere")
    known_table.upsert(rows({4: ("mon", 4)}), gate=tmp_path / "other.yaml")
    assert known_table.scan().count() == 4


def test_a_table_that_was_dropped_is_missed(known_table: lakelib.Table, others: lakelib.Lake) -> None:
    others.drop_table(known_table.name)
    with pytest.raises(lakelib.NotFoundError):
        known_table.upsert(rows({3: ("mon", 3)}))


def test_a_vacuum_meanwhile_costs_a_second_try(known_table: lakelib.Table, others: lakelib.Lake) -> None:
    others.vacuum(grace=timedelta(0))
    known_table.upsert(rows({3: ("mon", 3)}))
    assert known_table.scan().count() == 3
    assert _left_over(known_table) == set()


def test_work_that_was_done_is_not_done_again(known_table: lakelib.Table, others: lakelib.Lake) -> None:
    first = others.table(known_table.name).upsert(rows({3: ("mon", 3)}), idempotency_key=("loader", 1))
    again = known_table.upsert(rows({3: ("mon", 4)}), idempotency_key=("loader", 1))
    assert (again.id, again.replayed) == (first.id, True)
    wrong = known_table.upsert(pa.table({"other": [1]}), idempotency_key=("loader", 1))
    assert wrong.id == first.id
    assert sorted(known_table.scan().to_arrow()["value"].to_pylist()) == [1, 2, 3]


def test_what_is_wrong_is_refused_as_ever(known_table: lakelib.Table) -> None:
    with pytest.raises(lakelib.InvalidInputError, match="lacks"):
        known_table.upsert(pa.table({"id": [1]}))
    assert _left_over(known_table) == set()


def test_a_reply_that_was_lost_is_given_again_whatever_changed_since(
    known_table: lakelib.Table, others: lakelib.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, answers = commits.commit, []

    def twice(catalog: Any, proposal: Any, **how: Any) -> Any:
        answers.append(commit(catalog, proposal, **how))
        others.table(known_table.name).set_options({"compression": "none"})
        answers.append(commit(catalog, proposal, **how))
        return answers[-1]

    monkeypatch.setattr(commits, "commit", twice)
    snapshot = known_table.upsert(rows({3: ("mon", 3)}))
    assert answers[0].commits[0].snapshot.id == answers[1].commits[0].snapshot.id == snapshot.id


def test_what_is_remembered_is_young_and_little(table: lakelib.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = KnownTables()
    info = table._now()
    now = [1000.0]
    monkeypatch.setattr(runtime.time, "monotonic", lambda: now[0])
    assert remembered.recall(info.id) is None
    remembered.remember(info)
    assert remembered.recall(info.id) is info
    now[0] += 61
    assert remembered.recall(info.id) is None


def _left_over(table: lakelib.Table) -> set[str]:
    """Files that are in no commit."""
    folder = Path(table.location)
    stored = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
    return stored - {file.path for file in table.files()}
