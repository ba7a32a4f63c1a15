"""What the asset events of a table say, and which partitions they are about; and the note of a run, in which people
write, too. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

MOST_EVENTS = 400
"""A year of days. Each event may wake a run of each table that comes after, and Airflow enters all of them in one
request, which has five seconds. Where more partitions have changed there is one event, of the run's own, which sums
them up."""
_MARK = "Lake: "
_LONGEST_NOTE = 1000
"""As long as Airflow stores."""


def announced_keys(own: str, changed: Sequence[str]) -> list[str]:
    """The partitions that get an event each."""
    return list(changed) if len(changed) <= MOST_EVENTS else [own]


def event_extra(staged: Mapping[str, Any], published: Mapping[str, Any], changed: Sequence[str]) -> dict[str, Any]:
    """What all events of a snapshot say. `partitions`: how many it has changed; where not each has an event, also the
    first and the last."""
    extra = {
        "table": staged["table"],
        "snapshot": published["snapshot"],
        "commit": staged["commit"],
        "outcome": outcome_of(staged, published),
        "partitions": len(changed),
    }
    return extra if len(changed) <= MOST_EVENTS else {**extra, "first": changed[0], "last": changed[-1]}


def outcome_of(staged: Mapping[str, Any], published: Mapping[str, Any]) -> str:
    """The last verdict: publishing may have had the commit judged again."""
    return str(published.get("outcome") or staged["outcome"])


def noticed(staged: Mapping[str, Any], published: Mapping[str, Any], changed: Sequence[str]) -> str | None:
    """What whoever looks at the run should notice of it; None for nothing."""
    said = []
    if "approved_by" in published:
        who, why = published["approved_by"], published["approval_reason"]
        said.append(f"Published although its gate rejected it, by {who} ({why}).")
    elif outcome_of(staged, published) == "warn":
        said.append("Published with warnings of its gate: the report is linked from stage_and_judge.")
    if len(changed) > MOST_EVENTS:
        said.append(
            f"{len(changed):,} partitions have changed, from {changed[0]} to {changed[-1]}. Tables that come after this"
            f" one are woken for {staged['partition']} alone: backfill them."
        )
    return " ".join(said) or None


def with_line(note: str | None, said: str | None) -> str | None:
    """The note with what is said now in place of what was said before; None for an empty one."""
    theirs = [line for line in (note or "").splitlines() if not line.startswith(_MARK)]
    ours = [_MARK + said] if said else []
    return "\n".join([*ours, *theirs])[:_LONGEST_NOTE] or None
