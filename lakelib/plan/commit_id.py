"""Pure. Which commit is meant, as text: its id, or how that begins."""

import re
from uuid import UUID

_WHOLE = 32
_FEWEST = 4
_DIGITS = re.compile(rf"[0-9a-f]{{{_FEWEST},{_WHOLE}}}")


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
