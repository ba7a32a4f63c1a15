"""Tags: names that pin snapshots."""

from datetime import UTC

import pyarrow as pa
import pytest

from lakelib import ConflictError, InvalidInputError, Lake, NotFoundError, Table
from tests.acceptance.support import NewTable, data

SCHEMA = pa.schema([("id", pa.int64()), ("value", pa.string())])


@pytest.fixture
def table(new_table: NewTable) -> Table:
    """Of three snapshots, each with another value."""
    table = new_table(SCHEMA, primary_key=["id"])
    for value in ("a", "b", "c"):
        table.upsert(data(SCHEMA, (1, value)))
    return table


def value_at(table: Table, at: object) -> str:
    [row] = table.scan(at=at).to_arrow().to_pylist()  # type: ignore[arg-type]
    return str(row["value"])


def test_a_tag_pins_the_head_or_the_snapshot_that_is_named(table: Table) -> None:
    head = table.tag("now")
    assert (head.name, head.snapshot_id, head.created_at.tzinfo) == ("now", 3, UTC)
    assert table.tag("first", at=1).snapshot_id == 1
    assert table.tag("then", at=table.history()[1].committed_at).snapshot_id == 2
    assert table.tag("again", at="tag:first").snapshot_id == 1
    table.upsert(data(SCHEMA, (1, "d")))
    assert [value_at(table, f"tag:{name}") for name in ("now", "first", "then", "again")] == ["c", "a", "b", "a"]


def test_tags_are_listed_with_those_of_the_newest_snapshots_first(table: Table) -> None:
    assert table.tags() == []
    made = [table.tag("early", at=1), table.tag("late", at=3), table.tag("late too", at=3)]
    assert table.tags() == [made[2], made[1], made[0]]


def test_tagging_again_is_fine_and_moving_a_tag_is_not(table: Table) -> None:
    assert table.tag("eod", at=2) == table.tag("eod", at=2)
    with pytest.raises(ConflictError, match="is on snapshot 2, not 3") as caught:
        table.tag("eod")
    assert caught.value.kind == "tag_exists"
    assert value_at(table, "tag:eod") == "b"


def test_a_deleted_tag_is_gone_and_its_name_free(table: Table) -> None:
    table.tag("eod", at=2)
    table.delete_tag("eod")
    with pytest.raises(NotFoundError, match="'eod'"):
        table.scan(at="tag:eod")
    with pytest.raises(NotFoundError, match="'eod'"):
        table.delete_tag("eod")
    assert table.tag("eod", at=1).snapshot_id == 1


@pytest.mark.parametrize("name", ["eod 2026-11-18", "größe", "日本", "a/b=%41", "x" * 200, "'; drop table", "."])
def test_any_printable_text_is_a_name(table: Table, name: str) -> None:
    table.tag(name, at=1)
    assert value_at(table, f"tag:{name}") == "a"
    table.delete_tag(name)


@pytest.mark.parametrize("name", ["", " ", " a", "a ", "a\nb", "a\0", "\ud800", "x" * 201, "tag:a", 7, None])
def test_a_wrong_name_is_refused_with_what_is_allowed(table: Table, name: str) -> None:
    for attempt in (table.tag, table.delete_tag):
        with pytest.raises(InvalidInputError) as caught:
            attempt(name)
        assert caught.value.kind == "invalid_tag"
        assert "200" in caught.value.remedy
    assert table.tags() == []


def test_what_is_not_there_cannot_be_tagged(table: Table, new_table: NewTable, lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="snapshot 9"):
        table.tag("x", at=9)
    with pytest.raises(NotFoundError, match="'nothing'"):
        table.tag("x", at="tag:nothing")
    with pytest.raises(NotFoundError, match="no snapshot to tag yet"):
        new_table(SCHEMA).tag("x")
    lake.drop_table(table.name)
    with pytest.raises(NotFoundError):
        table.tag("x", at=1)


def test_each_table_has_names_of_its_own(table: Table, new_table: NewTable) -> None:
    other = new_table(SCHEMA)
    other.append(data(SCHEMA, (1, "other")))
    table.tag("eod", at=1)
    other.tag("eod")
    assert (value_at(table, "tag:eod"), value_at(other, "tag:eod")) == ("a", "other")
