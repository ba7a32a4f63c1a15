"""Tags: names that pin snapshots."""

from datetime import UTC, datetime, timedelta

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


# Ends

NOW = timedelta(0)


def tag_names(table: Table) -> list[str]:
    return [tag.name for tag in table.tags()]


def test_an_expiry_takes_away_the_tags_whose_time_is_over_and_forgets_their_snapshots(table: Table) -> None:
    table.tag("over", at=1, keep=NOW)
    told = table.expire(keep_last=1, dry_run=True)
    assert (told.tags, told.snapshots, tag_names(table)) == (("over",), (1, 2), ["over"])
    done = table.expire(keep_last=1)
    assert (done.tags, done.snapshots, done.kept_back, tag_names(table)) == (("over",), (1, 2), (), [])
    with pytest.raises(NotFoundError, match="'over'"):
        table.scan(at="tag:over")


def test_a_tag_holds_its_snapshot_until_its_time_is_over(table: Table) -> None:
    tag = table.tag("run", at=1, keep=timedelta(days=90))
    assert tag.until is not None
    assert abs(tag.until - tag.created_at - timedelta(days=90)) < timedelta(hours=1)
    done = table.expire(keep_last=1)
    assert (done.tags, done.snapshots) == ((), (2,))
    [holding] = done.holdings
    assert (holding.hold.since, holding.hold.until, holding.snapshots) == (tag.created_at, tag.until, (1,))
    assert f"tag run (since {tag.created_at:%Y-%m-%d}, until {tag.until:%Y-%m-%d}): 1 snapshot (1)" in repr(done)


def test_the_last_of_a_family_stay_however_old_and_other_families_do_not_count(table: Table) -> None:
    for at in (1, 2, 3):
        table.tag(f"run {at}", at=at, keep=NOW, keep_last=2, family="runs")
    table.tag("alone", at=1, keep_last=1, family="nights")
    table.tag("mine", at=3)
    assert table.expire(keep_last=1).tags == ("run 1",)
    assert sorted(tag_names(table)) == ["alone", "mine", "run 2", "run 3"]


def test_a_tag_that_was_set_without_an_end_never_goes_by_itself(table: Table) -> None:
    table.tag("eod", at=1)
    assert table.tag("eod", at=1, keep=NOW, family="runs").family is None
    table.tag("run", at=2, keep=NOW, family="runs")
    assert table.tag("run", at=2).until is None
    assert table.expire(keep_last=1).tags == ()
    assert sorted(tag_names(table)) == ["eod", "run"]


def test_of_two_ends_of_a_tag_the_later_counts(table: Table) -> None:
    late = table.tag("run", at=1, keep=timedelta(days=9))
    assert table.tag("run", at=1, keep=NOW) == late
    assert table.tag("run", at=1, keep_last=4).keep_last == 4
    assert table.tag("run", at=1, keep_last=2).keep_last == 4


def test_many_tags_that_hold_snapshots_are_told_in_one_line(table: Table) -> None:
    for at in (1, 2):
        for name in ("a", "b"):
            table.tag(f"{name}{at}", at=at, keep=timedelta(days=9))
            table.tag(f"{name}{at} mine", at=at)
    for value in ("d", "e"):
        table.upsert(data(SCHEMA, (1, value)))
        table.tag(value)
    table.upsert(data(SCHEMA, (1, "f")))
    [line] = [line for line in repr(table.expire(keep_last=1)).splitlines() if "kept back" in line]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert line.strip().startswith("kept back by 4 tags (the first is a1 mine, since ")
    assert line.endswith(", for ever): 4 snapshots (1 to 5)")
    assert today[:4] in line


@pytest.mark.parametrize(
    "end", [{"keep": timedelta(seconds=-1)}, {"keep": 90}, {"keep_last": 0}, {"keep_last": 2**31}, {"family": "a\0"}]
)
def test_a_wrong_end_is_refused(table: Table, end: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        table.tag("x", at=1, **end)  # type: ignore[arg-type]
    assert table.tags() == []


def test_whatever_names_a_snapshot_takes_the_text_of_a_moment(lake: Lake, table: Table) -> None:
    moment = table.history()[1].committed_at
    for text in (moment.isoformat(), moment.astimezone(UTC).replace(tzinfo=None).isoformat(), "2"):
        assert table.tag(f"at {text}", at=text).snapshot_id == 2
        assert [file.path for file in table.files(text)] == [file.path for file in table.files(2)]
        assert list(table.partitions(text)) == list(table.partitions(2))
        assert table.touched_partitions(text) == table.touched_partitions(2)
        assert [row["value"] for row in table.changes(after="1", until=text).to_arrow().to_pylist()] == ["b"]
        assert [row["value"] for row in table.diff(text, "3").to_arrow().to_pylist()].count("c") == 1
        assert table.preview_rollback(text).to == table.preview_rollback(2).to
        assert table.consumer(f"at {text}", after=text).position == 2
        assert next(lake.watch(table, after=text, timeout=5)).id == 3
        assert lake.sql(f"SELECT value FROM {table.name} FOR TIMESTAMP AS OF '{moment.isoformat()}'").count() == 1
        assert value_at(table, text) == "b"
    for text in ("2026-13-01", "yesterday", "", "tag:none"):
        with pytest.raises((InvalidInputError, NotFoundError)):
            table.tag("never", at=text)
