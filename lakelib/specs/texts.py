"""Pure. What texts in specs mean: the places that are filled in when they are used (`{partition}`, `{snapshot}`,
`${NAME}`), lengths of time as people write them ("30s", "10m", "6h", "7d", "2w", "1h 30m"), and the columns that a text
of DDL names, found without a SQL parser: enough to check what refers to them. Whether a type is one that a table can
have is said by who creates the table."""

import re
from collections.abc import Mapping
from datetime import timedelta

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError

_PLACE = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_PLAIN = re.compile(r"(?:\$\{[^{}]*\}|\{partition\}|[^*?\[{])*")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

PARTITION_PLACE = "{partition}"
ALLOWED_PREFIX = "LAKE_VAR_"
ALLOWED_NAME = "LANDING"
ALLOWED_NAMES_VARIABLE = "LAKE_SPEC_VARIABLES"
"""Lists the names of further variables that specs may use, with commas between."""
EXPECTED_LENGTH = 'a length of time such as "30s", "10m", "6h", "7d", "2w" or "1h 30m"'
LONGEST_LENGTH = timedelta(days=365_000)
"""Added to now or taken from it, it gives a moment that both Python and PostgreSQL have."""
_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|.", re.DOTALL)
_COLUMN = re.compile(r"(`(?:[^`]|``)+`|[^\W\d]\w*)\s+(.+)", re.DOTALL)
_NOT_NULL = re.compile(r"\s+NOT\s+NULL\b.*|\s+COMMENT\s.*", re.DOTALL | re.IGNORECASE)
_DEPTHS = {"(": 1, "<": 1, ")": -1, ">": -1}


def fill_variables(text: str, environ: Mapping[str, str], where: str) -> str:
    """`${NAME}` becomes what the environment says. Raises InvalidInputError, naming `where` the text is, for a variable
    that is not set, or empty, and for one that specs may not use: the environment has secrets, and what is filled in is
    seen in paths and logs."""
    listed = {name.strip() for name in environ.get(ALLOWED_NAMES_VARIABLE, "").split(",")}

    def value(matched: re.Match[str]) -> str:
        name = matched[1]
        if not (name == ALLOWED_NAME or name.startswith(ALLOWED_PREFIX) or name in listed):
            raise InvalidInputError(
                f"{where}: specs may not use the environment variable {name} in {text!r}.",
                kind="variable_not_allowed",
                remedy=f"Give it a name that begins with {ALLOWED_PREFIX}, or list it in {ALLOWED_NAMES_VARIABLE}, with"
                " commas between names, where the work runs.",
            )
        found = environ.get(name)
        if not found:
            raise InvalidInputError(
                f"{where}: the environment variable {name} in {text!r} is not set.",
                kind="variable_not_set",
                remedy=f"Set {name} where the work runs, or write the value into the spec.",
            )
        return found

    return _VARIABLE.sub(value, text)


def check_variables(text: str) -> None:
    """Raises ValueError that says what is expected, for a `${…}` that is no name."""
    for name in _VARIABLE.findall(text):
        if not _VARIABLE_NAME.fullmatch(name):
            raise ValueError(f"${{NAME}} with a name of letters, digits and _; not ${{{name}}}")


def fill_places(text: str, places: Mapping[str, object]) -> str:
    """`{partition}` and its like become their values; other braces stay as they are."""
    return _PLACE.sub(lambda matched: str(places.get(matched[1], matched[0])), text)


def plain_folder(path: str) -> str:
    """What a path, filled in or not, says of its folder before its first wildcard, with the slash."""
    matched = _PLAIN.match(path)
    assert matched is not None
    return matched[0][: matched[0].rfind("/") + 1]


def check_path_places(text: str) -> None:
    """Raises ValueError that says what is expected, for braces in a path that are neither the partition's place nor
    alternatives of a pattern: they would be looked for as they stand, and never be there."""
    for name in _PLACE.findall(_VARIABLE.sub("", text)):
        if "," not in name and f"{{{name}}}" != PARTITION_PLACE:
            raise ValueError(f"{PARTITION_PLACE}, or alternatives such as {{a,b}}, in braces; not {{{name}}}")


def check_places(text: str, known: tuple[str, ...]) -> None:
    """Raises ValueError that says what is expected, for braces that name none of the known places."""
    for name in _PLACE.findall(text):
        if name not in known:
            raise ValueError(f"{' or '.join(f'{{{each}}}' for each in known)} in braces; not {{{name}}}")
    rest = _PLACE.sub("", text)
    if "{" in rest or "}" in rest:
        raise ValueError("each brace to be closed, and opened")


# Lengths of time


LENGTH_PATTERN = r"^\d+[smhdw]( ?\d+[smhdw])*$"

_TOO_LONG = f"a length of time of at most {LONGEST_LENGTH.days:,} days"
_MOST_DIGITS = 20
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_LENGTH = re.compile(LENGTH_PATTERN, re.ASCII)
_LENGTH_PART = re.compile(r"(\d+)([smhdw])", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Raises ValueError that says what is expected. Each unit may be given once."""
    parts = _LENGTH_PART.findall(text) if _LENGTH.fullmatch(text) else []
    if not parts or len({unit for _, unit in parts}) < len(parts):
        raise ValueError(EXPECTED_LENGTH)
    if any(len(count) > _MOST_DIGITS for count, _ in parts):
        raise ValueError(_TOO_LONG)
    seconds = sum(int(count) * _SECONDS[unit] for count, unit in parts)
    if seconds > LONGEST_LENGTH.total_seconds():
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


# Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedColumn:
    name: str
    type: str
    """As it is written, in lower case, without what follows it."""


def parse_columns(text: str) -> tuple[NamedColumn, ...]:
    """Raises ValueError that says what is expected instead."""
    columns = tuple(_column(part) for part in _parts(text))
    seen: set[str] = set()
    for column in columns:
        if column.name.casefold() in seen:
            raise ValueError(f"each column once; {column.name!r} comes twice")
        seen.add(column.name.casefold())
    return columns


def _parts(text: str) -> list[str]:
    """What stands between the commas that are in no brackets, without comments."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += _DEPTHS.get(token, 0)
        if depth < 0:
            raise ValueError(f"brackets that match; one is closed that was never opened, after {parts[-1].strip()!r}")
        if token == "," and depth == 0:
            parts.append("")
        elif token.startswith(("--", "/*")) and len(token) > 1:
            parts[-1] += " "
        else:
            parts[-1] += token
    if depth:
        raise ValueError("brackets that match; one is never closed")
    return [part.strip() for part in parts]


def _column(part: str) -> NamedColumn:
    matched = _COLUMN.fullmatch(part)
    if matched is None:
        found = f"not {part!r}" if part else "with nothing between two commas, or after the last"
        raise ValueError(f"columns as a name and a type with commas between, such as `id BIGINT, dt DATE`; {found}")
    name = matched[1]
    if name.startswith("`"):
        name = name[1:-1].replace("``", "`")
    return NamedColumn(name=name, type=_NOT_NULL.sub("", matched[2]).strip().lower())
