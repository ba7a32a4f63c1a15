"""What the asset events of a table say, and the note of a run."""

from dags.lake_dags import events
from dags.lake_dags.events import with_line

_STAGED = {"table": "a.b", "partition": "2026-11-18", "commit": "0b1c", "outcome": "accept"}
_PUBLISHED = {"snapshot": 7}
_MANY = [f"key {number:05}" for number in range(events.MOST_EVENTS + 1)]


def test_as_many_partitions_as_can_be_told_get_an_event_each() -> None:
    assert events.announced_keys("key 00007", _MANY[:-1]) == _MANY[:-1]
    assert events.announced_keys("key 00007", _MANY) == ["key 00007"]


def test_an_event_that_stands_for_many_sums_them_up() -> None:
    extra = events.event_extra(_STAGED, _PUBLISHED, _MANY)
    assert (extra["partitions"], extra["first"], extra["last"]) == (len(_MANY), _MANY[0], _MANY[-1])
    assert events.event_extra(_STAGED, _PUBLISHED, ["2026-11-18"]) == {
        "table": "a.b",
        "snapshot": 7,
        "commit": "0b1c",
        "outcome": "accept",
        "partitions": 1,
    }


def test_the_last_verdict_is_told() -> None:
    again = {**_PUBLISHED, "outcome": "warn"}
    assert events.event_extra(_STAGED, again, ["2026-11-18"])["outcome"] == "warn"
    assert "with warnings" in str(events.noticed(_STAGED, again, ["2026-11-18"]))


def test_an_acceptance_of_few_partitions_is_nothing_to_notice() -> None:
    assert events.noticed(_STAGED, _PUBLISHED, ["2026-11-18"]) is None
    assert f"{len(_MANY)} partitions" in str(events.noticed(_STAGED, _PUBLISHED, _MANY))


def test_what_its_gate_rejected_is_noticed_with_who_published_it() -> None:
    rejected, approved = {**_STAGED, "outcome": "reject"}, {"approved_by": "anna", "approval_reason": "harmless"}
    said = events.noticed(rejected, {**_PUBLISHED, **approved}, ["2026-11-18"])
    assert said == "Published although its gate rejected it, by anna (harmless)."


def test_the_line_of_a_note_is_replaced_and_what_people_wrote_stays() -> None:
    assert with_line(None, None) is None
    assert with_line(None, "one") == "Lake: one"
    assert with_line("Lake: one\nI look into it\nanna", "two") == "Lake: two\nI look into it\nanna"
    assert with_line("Lake: one\nI look into it", None) == "I look into it"
    assert with_line("Lake: one", None) is None
    assert len(str(with_line("x" * 1000, "one"))) == 1000
