"""Pure. Which snapshot or commit is meant, as text: read alike by the library, the CLI, jobs and Spark's options."""

import re
from datetime import UTC, datetime
from uuid import UUID

from lakelib.errors import InvalidInputError

TAG_PREFIX = "tag:"
CONSUMER_PREFIX = "consumer:"
_MOST_DIGITS = 30
_MOST_SHOWN = 100
_ALSO = dict.fromkeys(("after", "until"), '"consumer:name", ')
"""What the bounds of changes may be beside."""
_WHOLE = 32
_FEWEST = 4
_DIGITS = re.compile(rf"[0-9a-f]{{{_FEWEST},{_WHOLE}}}")


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


def parse_commit_id(said: object) -> UUID | str | None:
    """A whole id; or the digits that one begins with, four at least, without dashes. None for what is neither."""
    if isinstance(said, UUID):
        return said
    digits = said.replace("-", "").lower() if isinstance(said, str) else ""
    if not _DIGITS.fullmatch(digits):
        return None
    return UUID(digits) if len(digits) == _WHOLE else digits


def ids_beginning(digits: str) -> tuple[UUID, UUID]:
    """The lowest id that begins with these digits, and the highest."""
    return UUID(digits.ljust(_WHOLE, "0")), UUID(digits.ljust(_WHOLE, "f"))
