"""Pure. What the text of Spark's options means, to read and to write alike."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakelib.errors import InvalidInputError, UnknownOptionError
from lakelib.plan.at import parse_at

FORMAT = "lake"
_READ_OPTIONS = ("path", "table", "at", "columns", "where")
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,]*[^`,\s]))\s*(,|\Z)")


def is_lake(format_name: str) -> bool:
    return format_name.casefold() == FORMAT


def told(options: Mapping[str, Any]) -> dict[str, str]:
    """What Spark's readers and writers are told, as Spark takes it: names in any case, None is no option."""
    return {
        name.casefold(): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
        if value is not None
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What is to be read: the arguments of a scan."""

    table: str
    columns: tuple[str, ...] | None
    where: str | None
    at: int | str | datetime | None


def parse_read(options: Mapping[str, str]) -> ReadOptions:
    """Raises InvalidInputError for an unknown option, or if no table is named."""
    check_known(options, _READ_OPTIONS, "to read a lake")
    name = options.get("path") or options.get("table")
    if not name:
        raise table_missing()
    columns = options.get("columns")
    return ReadOptions(
        table=name,
        columns=None if columns is None else split_names("columns", columns),
        where=options.get("where"),
        at=None if (at := options.get("at")) is None else parse_at(at),
    )


def split_names(option: str, text: str) -> tuple[str, ...]:
    """The names in "a, b": one with a comma, or with spaces around it, stands in backticks."""
    names: list[str] = []
    place, separator = 0, ","
    while separator:
        found = _NAME.match(text, place)
        if found is None:
            raise InvalidInputError(
                f"Option {option} is {text!r}.",
                kind="invalid_option",
                remedy="Give names separated by commas, those with a comma in backticks.",
            )
        quoted, plain, separator = found.groups()
        names.append(plain if quoted is None else quoted.replace("``", "`"))
        place = found.end()
    return tuple(names)


def check_known(given: Iterable[str], known: Iterable[str], purpose: str) -> None:
    """Raises InvalidInputError for an option that is not known; case does not matter, as in Spark."""
    known = tuple(known)
    folded = {name.casefold() for name in known}
    unknown = [name for name in given if name.casefold() not in folded]
    if unknown:
        raise UnknownOptionError(f"Unknown option {unknown[0]!r} {purpose}.", remedy=f"Known: {', '.join(known)}.")


def table_missing() -> InvalidInputError:
    return InvalidInputError(
        "No table is named.", kind="missing_table", remedy='Give its name, as in "shop.orders", as the path.'
    )
