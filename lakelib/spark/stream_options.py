"""What the text of a stream's options means, to read and to write alike."""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.changes import ChangeView, view_of
from lakelib.ops.stream import StreamRequest
from lakelib.spark.options import check_known, is_lake, split_names, table_missing, told
from lakelib.specs.durations import parse_duration

SCHEMA = "_schema"
"""Says to the data source that it is asked for a stream, with the columns of which version of the table's schema."""
_READ_OPTIONS = (
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
    check_known([name for name in options if name != SCHEMA], _READ_OPTIONS, "to read a stream of a lake")
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
class StreamNotes:
    """What a stream's writer was told before it was told to start."""

    format: str = ""
    mode: str = "append"
    query_name: str = ""
    partition_by: tuple[str, ...] = ()
    layout: str = ""
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        return is_lake(self.format)

    def add(self, options: Mapping[str, Any]) -> None:
        self.options |= told(options)

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

    def flag(self, option: str) -> bool:
        text = self.options.get(option, "false").casefold()
        if text not in ("true", "false"):
            raise wrong_option(option, text, "Give true or false.")
        return text == "true"


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
