"""Pure. Lengths of time as people write them in specs: "30s", "10m", "6h", "7d", "2w", "1h 30m"."""

import re
from datetime import timedelta

EXPECTED = 'a length of time such as "30s", "10m", "6h", "7d", "2w" or "1h 30m"'
PATTERN = r"^\d+[smhdw]( ?\d+[smhdw])*$"

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SPELLING = re.compile(PATTERN, re.ASCII)
_PART = re.compile(r"(\d+)([smhdw])", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Raises ValueError that says what is expected. Each unit may be given once."""
    parts = _PART.findall(text) if _SPELLING.match(text) and "\n" not in text else []
    if not parts or len({unit for _, unit in parts}) < len(parts):
        raise ValueError(EXPECTED)
    try:
        return timedelta(seconds=sum(int(count) * _SECONDS[unit] for count, unit in parts))
    except OverflowError:
        raise ValueError("a length of time below 2,700,000 years") from None


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
