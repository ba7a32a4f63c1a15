"""Pure. Which snapshot a reader means, as text: read alike by the library, the CLI, jobs and Spark's options."""

from datetime import UTC, datetime

from lakelib.errors import InvalidInputError

TAG_PREFIX = "tag:"
CONSUMER_PREFIX = "consumer:"
_MOST_DIGITS = 30
_MOST_SHOWN = 100
_ALSO = dict.fromkeys(("after", "until"), '"consumer:name", ')
"""What the bounds of changes may be beside."""


def parse_at(text: str, what: str = "at") -> int | str | datetime:
    """A snapshot's number ("42"), a tag ("tag:NAME", as it is), or a moment in ISO form, in UTC if it names no zone.
    Raises InvalidInputError for anything else."""
    if text.startswith(TAG_PREFIX):
        return text
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise wrong_at(text, what) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def wrong_at(at: object, what: str = "at") -> InvalidInputError:
    """The error for what means no snapshot; `what` is the argument's name."""
    shown = repr(at)
    return InvalidInputError(
        f"{what} is {shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + '…'}.",
        kind=f"invalid_{what}",
        remedy=f'Give a snapshot id, "tag:name", {_ALSO.get(what, "")}a datetime with a time zone, or text of a moment'
        ' such as "2026-11-18T10:30" (in UTC if it names no zone).',
    )
