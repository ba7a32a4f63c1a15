"""Pure. Lengths of time as people write them in specs: "30s", "10m", "6h", "7d", "2w", "1h 30m"."""

import re
from datetime import timedelta

EXPECTED = 'a length of time such as "30s", "10m", "6h", "7d", "2w" or "1h 30m"'
LONGEST = timedelta(days=365_000)
"""Added to now or taken from it, it gives a moment that both Python and PostgreSQL have."""

PATTERN = r"^\d+[smhdw]( ?\d+[smhdw])*$"

_TOO_LONG = f"a length of time of at most {LONGEST.days:,} days"
_MOST_DIGITS = 20
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SPELLING = re.compile(PATTERN, re.ASCII)
_PART = re.compile(r"(\d+)([smhdw])", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Raises ValueError that says what is expected. Each unit may be given once."""
    parts = _PART.findall(text) if _SPELLING.fullmatch(text) else []
    if not parts or len({unit for _, unit in parts}) < len(parts):
        raise ValueError(EXPECTED)
    if any(len(count) > _MOST_DIGITS for count, _ in parts):
        raise ValueError(_TOO_LONG)
    seconds = sum(int(count) * _SECONDS[unit] for count, unit in parts)
    if seconds > LONGEST.total_seconds():
        raise ValueError(_TOO_LONG)
    return timedelta(seconds=seconds)


def format_duration(length: timedelta) -> str:
    """The text of a length in whole seconds that is not negative, in as few units as there can be: "1h 30m"."""
    rest = length.days * 86_400 + length.seconds
    if rest < 0 or length.microseconds:
        raise ValueError(f"{length} is no number of whole seconds from 0")
    whole = next((unit for unit, seconds in _SECONDS.items() if rest and rest % seconds == 0), "s")
    if rest // _SECONDS[whole] < 100:
        return f"{rest // _SECONDS[whole]}{whole}"
    parts = []
    for unit, seconds in _SECONDS.items():
        count, rest = divmod(rest, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts)
