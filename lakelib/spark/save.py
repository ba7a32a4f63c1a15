"""Saves a data frame to a table of a lake, as the modes and options of Spark's writer say."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError, NotFoundError, RetryableError
from lakelib.lake import Lake
from lakelib.model.schema import Column
from lakelib.model.table import Snapshot
from lakelib.ops.create import find_table, parse_buckets
from lakelib.ops.request import WriteOptions, parse_request
from lakelib.rows.types import arrow_type, column_type_text
from lakelib.spark.options import Notes, check_known, split_names, table_missing
from lakelib.table import Table
from lakelib.work.spark.frames import open_frame

_LOG = logging.getLogger(__name__)
_MUST_BE_NEW = ("errorifexists", "error", "default")
_MODES = ("append", "overwrite", "ignore", *_MUST_BE_NEW)
_MERGE_SCHEMA = "write.merge-schema"
_EXPLICIT_CAST = "write.merge-schema.explicit-cast"
_OVERWRITE_MODE = "partitionOverwriteMode"
_REPLACE_WHERE = "replaceWhere"
_OVERWRITE_SCHEMA = "overwriteSchema"
_OVERWRITE_SETTING = "spark.sql.sources.partitionOverwriteMode"
_OPTIONS = (
    "path",
    "table",
    "distribution",
    _MERGE_SCHEMA,
    _EXPLICIT_CAST,
    _OVERWRITE_MODE,
    _REPLACE_WHERE,
    _OVERWRITE_SCHEMA,
    "primary-key",
    "sequence-by",
    "buckets",
    "idempotency.application",
    "idempotency.version",
    "gate",
)


@dataclass(slots=True)
class SaveNotes(Notes):
    """Those of a writer of all rows at once."""

    mode: str = "errorifexists"

    def names(self, option: str) -> tuple[str, ...]:
        text = self.options.get(option)
        return split_names(option, text) if text else ()

    @property
    def buckets(self) -> int | str | None:
        text = self.options.get("buckets")
        return int(text) if text and text.isdecimal() else text


def save_frame(lake: Lake, frame: Any, path: str | None, notes: SaveNotes) -> None:
    """Writes the frame; raises InvalidInputError before anything is done where the writer was told something wrong."""
    _check(notes)
    name = path or notes.options.get("path") or notes.options.get("table")
    if not name:
        raise table_missing()
    options, overwritten = _write_options(notes), _overwritten(frame, notes)
    table = _find(lake, name)
    if table is None:
        _create(lake, name, frame, notes, options)
    elif notes.mode in _MUST_BE_NEW:
        raise InvalidInputError(
            f"Table {name} is there already.",
            kind="table_exists",
            remedy='Give mode("append"), mode("overwrite") or mode("ignore").',
        )
    elif notes.mode != "ignore":
        _check_definition(lake, name, notes)
        if notes.mode == "overwrite":
            where = notes.options.get(_REPLACE_WHERE.casefold())
            anew = notes.flag(_OVERWRITE_SCHEMA)
            target = "all" if where else overwritten
            _tell(table.overwrite(frame, target, where=where, overwrite_schema=anew, **options), name)
        else:
            _tell(table.append(frame, **options), name)


def _tell(snapshot: Snapshot, name: str) -> None:
    """A save gives nothing back: what was not written is said in the log."""
    if snapshot.replayed:
        _LOG.warning(
            "nothing was written to %s: this version of the work, or a later one, is in snapshot %d already",
            name,
            snapshot.id,
        )


def _find(lake: Lake, name: str) -> Table | None:
    try:
        return lake.table(name)
    except NotFoundError:
        return None


def _create(lake: Lake, name: str, frame: Any, notes: SaveNotes, options: WriteOptions) -> None:
    """A new table with the frame's rows. It is gone again if they cannot be written."""
    table = lake.create_table(
        name,
        _new_schema(frame),
        primary_key=notes.names("primary-key"),
        partition_by=notes.partition_by,
        sequence_by=notes.names("sequence-by"),
        buckets=notes.buckets,
    )
    try:
        table.append(frame, **options)
    except RetryableError:  # the rows may have been published all the same
        raise
    except BaseException:
        with suppress(LakeError):
            if table.head is None:
                lake.drop_table(name)
        raise


def _new_schema(frame: Any) -> pa.Schema:
    """All columns, and all fields inside of them, may be NULL, as in every table that Spark makes: that the first rows
    have none is no promise."""
    schema = open_frame(frame).schema
    return pa.schema([(each.name, arrow_type(column_type_text(each.name, each.type))) for each in schema])


def _check(notes: SaveNotes) -> None:
    if notes.mode not in _MODES:
        raise InvalidInputError(
            f"Unknown mode {notes.mode!r}.", kind="invalid_mode", remedy=f"Give one of {', '.join(_MODES)}."
        )
    if notes.layout:
        raise InvalidInputError(
            f"{notes.layout} means nothing to a lake.",
            kind="unsupported_write",
            remedy='Leave it out: tables are sorted by their primary key; the option "buckets" says how it is spread.',
        )
    check_known(notes.options, _OPTIONS, "to write to a lake")
    _check_replaced(notes)
    if notes.flag(_OVERWRITE_SCHEMA) and notes.mode != "overwrite":
        raise InvalidInputError(
            f"Option {_OVERWRITE_SCHEMA} is for an overwrite.", kind="invalid_option", remedy='Give mode("overwrite").'
        )


def _check_replaced(notes: SaveNotes) -> None:
    """Two answers to what is replaced, or one where nothing is, are none."""
    where = notes.options.get(_REPLACE_WHERE.casefold())
    if where is None:
        return
    if notes.mode != "overwrite" or not where.strip() or _OVERWRITE_MODE.casefold() in notes.options:
        raise InvalidInputError(
            f"Option {_REPLACE_WHERE} is {where!r}, the mode {notes.mode!r}.",
            kind="invalid_option",
            remedy=f'Give a predicate, mode("overwrite"), and no {_OVERWRITE_MODE}.',
        )


def _check_definition(lake: Lake, name: str, notes: SaveNotes) -> None:
    """What a writer says of the table must be so: it was decided when the table was made."""
    table = find_table(lake.runtime, name)
    check_names(name, "primary-key", notes.names("primary-key"), table.primary_key)
    check_names(name, "sequence-by", notes.names("sequence-by"), table.sequence_by)
    check_names(name, "partitionBy", notes.partition_by, table.partition_by)
    if notes.buckets is not None and parse_buckets(notes.buckets, has_key=bool(table.primary_key)) != table.buckets:
        raise _differs(name, "buckets", str(notes.buckets))


def check_names(name: str, what: str, given: Sequence[str], columns: Sequence[Column]) -> None:
    """Raises InvalidInputError if names are given, and are not those of the table's columns."""
    if given and [each.casefold() for each in given] != [column.name.casefold() for column in columns]:
        raise _differs(name, what, ", ".join(given))


def _differs(name: str, what: str, given: str) -> InvalidInputError:
    return InvalidInputError(
        f"{what} is {given}, but table {name} was made otherwise.",
        kind="table_differs",
        remedy=f"Leave {what} out, or write to another table.",
    )


def _write_options(notes: SaveNotes) -> WriteOptions:
    application, version = (notes.options.get(f"idempotency.{part}") for part in ("application", "version"))
    given: WriteOptions = {
        "merge_schema": notes.flag(_MERGE_SCHEMA),
        "explicit_cast": notes.flag(_EXPLICIT_CAST),
        "distribution": notes.options.get("distribution", "auto"),
        "gate": notes.options.get("gate"),
    }
    if application is not None or version is not None:
        is_number = version is not None and version.isdecimal()
        given["idempotency_key"] = (application, int(version) if is_number else version)  # type: ignore[arg-type, typeddict-item]
    parse_request(**given)
    return given


def _overwritten(frame: Any, notes: SaveNotes) -> str:
    """What an overwrite replaces. A word that is misspelt must not replace everything."""
    mode = notes.options.get(_OVERWRITE_MODE.casefold()) or frame.sparkSession.conf.get(_OVERWRITE_SETTING, "static")
    if mode.casefold() not in ("static", "dynamic"):
        raise InvalidInputError(
            f"Option {_OVERWRITE_MODE} is {mode!r}.", kind="invalid_option", remedy="Give static or dynamic."
        )
    return "dynamic" if mode.casefold() == "dynamic" else "all"
