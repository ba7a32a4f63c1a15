"""What the text of Spark's options means, of batches and of streams, to read and to write alike."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, UnknownOptionError
from lakelib.model.changes import ChangeView, ScanView, view_of
from lakelib.model.text import choose_from
from lakelib.ops.changes import ChangesRequest
from lakelib.ops.stream import StreamRequest
from lakelib.plan.meant import parse_at
from lakelib.specs.texts import parse_duration

FORMAT = "lake"
_READ_OPTIONS = ("path", "table", "at", "columns", "where", "changes_after", "changes_until", "view")
_BOUNDS = ("changes_after", "changes_until")
_SCAN_VIEWS = tuple(view.value for view in ScanView)
_VIEWS = (*_SCAN_VIEWS, *(view.value for view in ChangeView))
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`,]*[^`,\s]))\s*(,|\Z)")
SCHEMA = "_schema"
"""Says to the data source that it is asked for a stream, with the columns of which version of the table's schema."""


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
    """What is to be read: the arguments of a scan, or those of changes."""

    table: str
    columns: tuple[str, ...] | None
    where: str | None
    at: int | str | datetime | None = None
    view: str = ScanView.MERGED.value
    """Of a snapshot."""
    changes: ChangesRequest | None = None
    """None for the rows of a snapshot."""


def parse_read(options: Mapping[str, str]) -> ReadOptions:
    """Raises InvalidInputError for an unknown option, or if no table is named."""
    check_known(options, _READ_OPTIONS, "to read a lake")
    name = options.get("path") or options.get("table")
    if not name:
        raise table_missing()
    text = options.get("columns")
    columns = None if text is None else split_names("columns", text)
    is_scan = _asks_for_a_snapshot(options)
    return ReadOptions(
        table=name,
        columns=columns,
        where=options.get("where"),
        at=None if (at := options.get("at")) is None else parse_at(at),
        view=options["view"] if is_scan and "view" in options else ScanView.MERGED.value,
        changes=None if is_scan else _parse_changes(options, columns),
    )


def _asks_for_a_snapshot(options: Mapping[str, str]) -> bool:
    """By its view, where no range is named. Raises InvalidInputError for a view that is none of either."""
    view = options.get("view", ScanView.MERGED.value)
    if any(name in options for name in _BOUNDS):
        return False
    if view not in _VIEWS:
        raise InvalidInputError(
            f"view is {view!r}.",
            kind="invalid_view",
            remedy=f"{choose_from('Views', view, _VIEWS)} Of a snapshot: {', '.join(_SCAN_VIEWS)}.",
        )
    return view in _SCAN_VIEWS


def _parse_changes(options: Mapping[str, str], columns: tuple[str, ...] | None) -> ChangesRequest:
    """Raises InvalidInputError for changes of one snapshot."""
    if "at" in options:
        raise InvalidInputError(
            "Option at names a snapshot, and changes lie between two.",
            kind="invalid_option",
            remedy="Give changes_after and changes_until, or at.",
        )
    return ChangesRequest(
        after=options.get("changes_after"),
        until=options.get("changes_until"),
        view=view_of(ChangeView, options.get("view", ChangeView.LATEST.value)).value,
        columns=columns,
        where=options.get("where"),
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


# Streams


_STREAM_READ_OPTIONS = (
    "path",
    "table",
    "columns",
    "where",
    "view",
    "startingAfter",
    "maxSnapshotsPerTrigger",
    "maxRowsPerTrigger",
    "consumer",
    "keepFor",
    "schemaChanges",
)
_WRITE_OPTIONS = (
    "path",
    "table",
    "checkpointLocation",
    "application",
    "gate",
    "distribution",
    "write.merge-schema",
    "write.merge-schema.explicit-cast",
)
_CHANGES = ("stop", "follow")
_MOST = 2**31 - 1


def is_stream(options: Mapping[str, str]) -> bool:
    return SCHEMA in options


def table_of(options: Mapping[str, str]) -> str:
    """Raises InvalidInputError if no table is named."""
    name = options.get("path") or options.get("table")
    if not name:
        raise table_missing()
    return name


def parse_stream(options: Mapping[str, str], schema_id: int) -> StreamRequest:
    """Raises InvalidInputError for an unknown option, or one that means nothing."""
    check_known([name for name in options if name != SCHEMA], _STREAM_READ_OPTIONS, "to read a stream of a lake")
    columns = options.get("columns")
    changes = options.get("schemachanges", "stop")
    if changes not in _CHANGES:
        raise wrong_option("schemaChanges", changes, f"Give one of {', '.join(_CHANGES)}.")
    return StreamRequest(
        schema_id=schema_id,
        view=view_of(ChangeView, options.get("view", "all")),
        says_view="view" in options,
        columns=None if columns is None else split_names("columns", columns),
        where=options.get("where"),
        starting_after=options.get("startingafter"),
        consumer=options.get("consumer"),
        keep_for=_parse_length("keepFor", options.get("keepfor")),
        most_snapshots=_parse_count("maxSnapshotsPerTrigger", options.get("maxsnapshotspertrigger")),
        most_rows=_parse_count("maxRowsPerTrigger", options.get("maxrowspertrigger")),
        follows_columns=changes == "follow",
    )


@dataclass(slots=True)
class Notes:
    """What a writer was told before it was told to begin."""

    mode: str
    format: str = ""
    partition_by: tuple[str, ...] = ()
    layout: str = ""
    """The method that asked for a layout of files which is Spark's own."""
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        return is_lake(self.format)

    def add(self, options: Mapping[str, Any]) -> None:
        self.options |= told(options)

    def flag(self, option: str) -> bool:
        text = self.options.get(option.casefold(), "false").casefold()
        if text not in ("true", "false"):
            raise wrong_option(option, text, "Give true or false.")
        return text == "true"


@dataclass(slots=True)
class StreamNotes(Notes):
    """Those of a stream's writer."""

    mode: str = "append"
    query_name: str = ""

    def check(self) -> None:
        """Raises InvalidInputError for an unknown option or mode."""
        if self.mode not in ("append", "complete", "update"):
            raise InvalidInputError(
                f"Unknown output mode {self.mode!r}.",
                kind="invalid_mode",
                remedy="Give append, complete or update.",
            )
        if self.layout:
            raise InvalidInputError(
                f"{self.layout} means nothing to a lake.",
                kind="unsupported_write",
                remedy="Leave it out: tables are sorted by their primary key.",
            )
        check_known(self.options, _WRITE_OPTIONS, "to write a stream to a lake")


def wrong_option(name: str, value: object, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"Option {name} is {value!r}.", kind="invalid_option", remedy=remedy)


def _parse_count(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:20]) <= _MOST):
        raise wrong_option(name, text, f"Give a number from 1 to {_MOST:,}.")
    return int(text)


def _parse_length(name: str, text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise wrong_option(name, text, f"Give {error}.") from None
