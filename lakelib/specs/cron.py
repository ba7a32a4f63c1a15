"""Pure. Says what is wrong with a cron expression: five fields (minute, hour, day of month, month, day of week) or a
name such as @daily. What it means is for the scheduler."""

import re

_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    ("day of week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
NAMES = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
EXPECTED = 'five fields (minute, hour, day of month, month, day of week) such as "0 2 * * *", or one of ' + ", ".join(
    NAMES
)
_ITEM = re.compile(r"(\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:/(\d+))?", re.ASCII)


def check_cron(text: str) -> None:
    """Raises ValueError that says what is expected, and of which field."""
    if text in NAMES:
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(EXPECTED)
    for field, (name, least, most, words) in zip(fields, _FIELDS, strict=True):
        for item in field.lower().split(","):
            if not _is_item(item, least, most, words):
                raise ValueError(
                    f"{name} as *, a number from {least} to {most}, a range, a step, or a list of these; not {item!r}"
                )


def _is_item(item: str, least: int, most: int, words: tuple[str, ...]) -> bool:
    matched = _ITEM.fullmatch(item)
    if matched is None or (matched[2] is not None and not 1 <= int(matched[2]) <= most):
        return False
    if matched[1] == "*":
        return True
    numbers = [_number(part, least, words) for part in matched[1].split("-")]
    if any(number is None or not least <= number <= most for number in numbers):
        return False
    if len(numbers) == 1:
        return matched[2] is None
    return numbers == sorted(numbers, key=lambda number: number or 0)


def _number(text: str, least: int, words: tuple[str, ...]) -> int | None:
    if text in words:
        return words.index(text) + least
    return int(text) if text.isdecimal() else None
