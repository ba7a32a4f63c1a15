"""Pure, but for looking whether files are there. What must hold between the fields of a table's spec."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lakelib.errors import InvalidInputError, UnknownOptionError
from lakelib.model.options import parse_options
from lakelib.specs.calendar import parse_cron
from lakelib.specs.partition_keys import Step
from lakelib.specs.problems import Problem, shown
from lakelib.specs.table_fields import FOREVER
from lakelib.specs.texts import PARTITION_PLACE, plain_folder

if TYPE_CHECKING:
    from lakelib.specs.table_spec import TableSpec

_KEY_TYPES: Mapping[Step, tuple[str, ...]] = {
    "day": ("date", "string", "timestamp", "timestamp_ntz"),
    "hour": ("string", "timestamp", "timestamp_ntz"),
    "month": ("date", "string"),
}

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_ONE_PARTITION = re.compile(r":partition\b", re.IGNORECASE)
_ONE_TICK: Mapping[Step, str] = {"day": "0 2 * * *", "hour": "10 * * * *", "month": "0 3 1 * *"}


def find_problems(spec: "TableSpec", leave_out: Collection[str] = ()) -> list[Problem]:
    """All that is wrong between fields; nothing is said of what rests on the fields to `leave_out`."""
    return [
        problem for fields, find in _CHECKS if not any(field in leave_out for field in fields) for problem in find(spec)
    ]


def _column_names(spec: "TableSpec") -> Iterator[Problem]:
    known = {column.name.casefold() for column in spec.named_columns}
    for field in ("primary_key", "partition_by", "sequence_by"):
        seen: set[str] = set()
        for place, name in enumerate(getattr(spec, field)):
            if name.casefold() not in known:
                yield Problem(place=(field, place), found=repr(name), expected=f"one of columns: {_columns(spec)}")
            if name.casefold() in seen:
                yield Problem(place=(field, place), found=f"{name!r} again", expected="each column once")
            seen.add(name.casefold())


def _keyed(spec: "TableSpec") -> Iterator[Problem]:
    if spec.primary_key:
        return
    for field in ("buckets", "sequence_by"):
        if value := getattr(spec, field):
            yield Problem(place=(field,), found=shown(value), expected="a primary_key for it, or nothing")


def _upsert(spec: "TableSpec") -> Iterator[Problem]:
    if spec.write.mode == "upsert" and not spec.primary_key:
        yield Problem(
            place=("write", "mode"), found="upsert without a primary_key", expected="a primary_key, append or overwrite"
        )


def _partition(spec: "TableSpec") -> Iterator[Problem]:
    column, every = spec.partition.column, spec.partition.every
    if every == "none":
        yield from _whole(spec)
    elif column is None:
        yield from _dated_copy(spec)
    elif column.casefold() not in [name.casefold() for name in spec.partition_by]:
        named = ", ".join(spec.partition_by) or "which is empty"
        yield Problem(
            place=("partition", "column"), found=repr(column), expected=f"one of the columns of partition_by: {named}"
        )
    else:
        yield from _key_type(spec, column, every)


def _whole(spec: "TableSpec") -> Iterator[Problem]:
    if spec.partition.column is not None:
        found = f"none for column {spec.partition.column!r}"
        yield Problem(place=("partition", "every"), found=found, expected="day, hour or month")
    if spec.partition.strict:
        yield Problem(place=("partition", "strict"), found="true", expected="a partition.column for it")


def _dated_copy(spec: "TableSpec") -> Iterator[Problem]:
    """Runs that say of which day they are fill a table that does not: each puts a full copy in place of the last."""
    every = spec.partition.every
    if spec.write.mode != "overwrite" or spec.write.partitions != "all":
        yield Problem(
            place=("partition", "column"),
            found="nothing",
            expected=f"a column that holds the {every}, or every: none, or, where each {every} brings a full copy,"
            " write: {mode: overwrite, partitions: all}",
        )


def _strict(spec: "TableSpec") -> Iterator[Problem]:
    if spec.partition.strict and spec.write.mode == "overwrite" and spec.write.partitions != "key":
        found = f"true, and an overwrite of partitions: {spec.write.partitions}"
        yield Problem(place=("partition", "strict"), found=found, expected="write.partitions: key")


def _key_type(spec: "TableSpec", column: str, every: Step) -> Iterator[Problem]:
    kinds = [named.type for named in spec.named_columns if named.name.casefold() == column.casefold()]
    if kinds and kinds[0] not in _KEY_TYPES[every]:
        yield Problem(
            place=("partition", "every"),
            found=f"{every} for column {column!r} of type {kinds[0].upper()}",
            expected=f"for a {every} a column of type {' or '.join(kind.upper() for kind in _KEY_TYPES[every])}",
        )


def _options(spec: "TableSpec") -> Iterator[Problem]:
    for name, value in spec.options.items():
        if name == "required_gate":
            yield Problem(place=("options", name), found=repr(value), expected="a gate: the option follows from it")
            continue
        try:
            parse_options({name: value})
        except InvalidInputError as error:
            is_known = not isinstance(error, UnknownOptionError)
            found = repr(value) if is_known else "an option that is not known"
            expected = error.remedy.removeprefix("Give ").removeprefix("Known options: ").rstrip(".")
            yield Problem(place=("options", name), found=found, expected=expected if is_known else f"one of {expected}")


def _rows(spec: "TableSpec") -> Iterator[Problem]:
    """Rows come from files, or from a query over tables."""
    if spec.source is None and (spec.transform is None or not spec.reads):
        yield Problem(
            place=("source",), found="nothing", expected="a source, or a transform that reads tables of the lake"
        )
    if spec.reads and spec.transform is None:
        yield Problem(place=("reads",), found="views without a transform", expected="a transform that uses them")
    if spec.write.when_empty is not None and spec.transform is None:
        yield Problem(
            place=("write", "when_empty"),
            found=f"{spec.write.when_empty} without a transform",
            expected="a transform, or source.when_empty",
        )


def _changes(spec: "TableSpec") -> Iterator[Problem]:
    """A table cannot follow what it does itself, and keeps the history of what it follows alone."""
    for view, read in spec.reads.items():
        if read.changes is not None and read.table == spec.table:
            yield Problem(
                place=("reads", view, "changes"),
                found=f"{read.changes} of the table itself",
                expected="changes of other tables; its own it makes by every run",
            )
        if read.changes is None and read.keep_for is not None:
            yield Problem(
                place=("reads", view, "keep_for"),
                found="it beside a table that is read whole",
                expected="changes: latest, net or all; only their runs have a position that keeps history",
            )


def _from_changes(spec: "TableSpec") -> Iterator[Problem]:
    if not spec.partition.from_changes:
        return
    place = ("partition", "from_changes")
    if not spec.follows_changes:
        expected = "a table in reads whose changes are followed: {table: shop.orders, changes: latest}"
        yield Problem(place=place, found="true", expected=expected)
    if spec.write.when_empty == "skip":
        expected = "publish or fail: partitions that have no rows any more become empty"
        yield Problem(place=("write", "when_empty"), found="skip beside partition.from_changes", expected=expected)
    if spec.source is not None:
        yield Problem(place=place, found="true beside a source", expected="rows that come from tables alone")
    if spec.partition.every == "none":
        yield Problem(place=place, found="true for the one key all", expected="a column, and every: day, hour or month")
    elif spec.write.mode != "overwrite" or spec.write.partitions != "key":
        found = spec.write.mode + (f" of partitions: {spec.write.partitions}" if spec.write.mode == "overwrite" else "")
        yield Problem(
            place=place,
            found=f"true beside write.mode {found}",
            expected="write: {mode: overwrite}, by partitions: key",
        )


def _asks_for_one(spec: "TableSpec") -> Iterator[Problem]:
    """The rows of all partitions that are made anew come from one query."""
    if not spec.partition.from_changes or spec.transform_path is None or not os.path.isfile(spec.transform_path):
        return
    if _ONE_PARTITION.search(_COMMENT.sub(" ", spec.transform_path.read_text(encoding="utf-8", errors="replace"))):
        yield Problem(
            place=("transform",),
            found=":partition in its query",
            expected="a query that gives the rows of all partitions that it sees, for from_changes may make several",
        )


def _files(spec: "TableSpec") -> Iterator[Problem]:
    for field in ("transform", "gate"):
        path: Path | None = getattr(spec, f"{field}_path")
        if path is not None and not os.path.isfile(path):  # also of names that no file can have
            yield Problem(
                place=(field,),
                found=repr(getattr(spec, field)),
                expected=f"a file; there is none at {os.path.normpath(path)}",
            )


def _schedule(spec: "TableSpec") -> Iterator[Problem]:
    schedule = spec.schedule
    if schedule is None:
        return
    if (schedule.cron is None) == (schedule.after is None):
        found = "neither" if schedule.cron is None else "both"
        yield Problem(place=("schedule",), found=f"{found} of cron and after", expected="one of them")
    if schedule.after is not None:
        for field in ("timezone", "start", "catchup", "catch_up_keys"):
            if field in schedule.model_fields_set:
                value = shown(getattr(schedule, field))
                yield Problem(place=("schedule", field), found=f"{value} beside after", expected="it beside cron only")
        if spec.table in schedule.after:
            yield Problem(
                place=("schedule", "after", schedule.after.index(spec.table)),
                found=f"{spec.table!r} itself",
                expected="other tables; a run would start the next one for ever",
            )
    if schedule.catchup and schedule.start is None:
        yield Problem(place=("schedule", "catchup"), found="true", expected="a start, the first day to make up for")


def _ticks(spec: "TableSpec") -> Iterator[Problem]:
    """A tick of cron is about one partition, or says that it makes up for others."""
    schedule, every = spec.schedule, spec.partition.every
    if schedule is None or schedule.cron is None:
        return
    if every == "none":
        if schedule.catch_up_keys:
            expected = "a partition.every for it: the table has the one key all"
            yield Problem(place=("schedule", "catch_up_keys"), found="true", expected=expected)
        return
    if every == "hour" and schedule.timezone != "UTC":
        expected = "UTC where partition.every is hour: such keys are hours in UTC"
        yield Problem(place=("schedule", "timezone"), found=repr(schedule.timezone), expected=expected)
    if not schedule.catch_up_keys and not parse_cron(schedule.cron).ticks_once_a(every):
        yield Problem(
            place=("schedule", "cron"),
            found=f"{schedule.cron!r}, which does not tick once for each {every}",
            expected=f"one tick a {every}, such as {_ONE_TICK[every]!r}, or catch_up_keys: true, with which a tick is"
            f" about each {every} that ended since the tick before",
        )


def _own_files(spec: "TableSpec") -> Iterator[Problem]:
    """A run reads files, and waits for a marker, that no run of another partition takes for its own."""
    source, every = spec.source, spec.partition.every
    if source is None or every == "none":
        return
    is_own = PARTITION_PLACE in source.path
    if not is_own:
        expected = f"{PARTITION_PLACE} in it, for a run is about one {every}"
        yield Problem(place=("source", "path"), found=repr(source.path), expected=expected)
    marker = source.arrival.marker
    if marker is not None and "/" not in marker:
        marker = plain_folder(source.path) + marker if is_own else None
    if marker is not None and PARTITION_PLACE not in marker:
        yield Problem(
            place=("source", "arrival", "marker"),
            found=f"{marker!r} for every {every}",
            expected=f"{PARTITION_PLACE} in its path, or in the folders that source.path names before its first"
            " wildcard, or null",
        )


def _mark_done(spec: "TableSpec") -> Iterator[Problem]:
    kinds = [each.kind for each in spec.publish.mark_done]
    for place, kind in enumerate(kinds):
        if kind != "http_report" and kind in kinds[:place]:
            yield Problem(place=("publish", "mark_done", place), found=f"{kind} again", expected="each way once")
    named = (spec.partition.column or "").casefold()
    others = [name for name in spec.partition_by if name.casefold() != named]
    if kinds and others:
        yield Problem(
            place=("publish", "mark_done"),
            found=f"a table that is partitioned by {', '.join(others)} as well",
            expected="partitions that a run's key names alone: leave mark_done out, or that out of partition_by",
        )


def _tag(spec: "TableSpec") -> Iterator[Problem]:
    """A tag stays where it is: a name that every run gives can be given once only."""
    tag = spec.publish.tag
    if tag is None:
        return
    places = ["{snapshot}"] if spec.partition.every == "none" else ["{partition}", "{snapshot}"]
    if not any(place in tag.name for place in places):
        expected = f"{' or '.join(places)} in it, for tags are never moved"
        yield Problem(place=("publish", "tag"), found=repr(tag.name), expected=expected)
    if tag.keep == FOREVER and tag.keep_last is not None:
        yield Problem(
            place=("publish", "tag", "keep_last"), found=f"{tag.keep_last} beside keep: forever", expected="one of them"
        )


def find_warnings(spec: "TableSpec") -> Iterator[Problem]:
    """What is allowed, and perhaps not meant."""
    tag = spec.publish.tag
    if tag is not None and not tag.has_end and tag.keep != FOREVER and spec.maintenance.expire is not None:
        yield Problem(
            place=("publish", "tag"),
            found=f"{tag.name!r} without an end: each run's snapshot is kept for ever, and expiry frees nothing",
            expected="keep, such as 90d, or keep_last beside name, or keep: forever",
        )
    replaces = spec.write.mode == "overwrite" and not spec.partition.from_changes
    if replaces and spec.reads and all(read.changes is not None for read in spec.reads.values()):
        yield Problem(
            place=("write", "mode"),
            found="overwrite, by rows that are made of changes alone: what has not changed goes",
            expected="upsert or append, or partition.from_changes, which makes partitions from all their rows",
        )


def _spark_place(spec: "TableSpec") -> Iterator[Problem]:
    spark = spec.spark
    said = [name for name in ("master", "remote", "connection") if getattr(spark, name) is not None]
    if len(said) > 1:
        yield Problem(place=("spark", said[1]), found=f"both {said[0]} and {said[1]}", expected="one of them")
    others = [] if spark.remote is None else [name for name in spark.conf if not name.startswith("spark.sql.")]
    if others:
        yield Problem(
            place=("spark", "conf", others[0]),
            found="a setting of the server's own application",
            expected="with remote just settings of a session: spark.sql.…",
        )


def _columns(spec: "TableSpec") -> str:
    return ", ".join(column.name for column in spec.named_columns)


_CHECKS: tuple[tuple[tuple[str, ...], Callable[["TableSpec"], Iterator[Problem]]], ...] = (
    (("columns", "primary_key", "partition_by", "sequence_by"), _column_names),
    (("primary_key", "buckets", "sequence_by"), _keyed),
    (("primary_key", "write"), _upsert),
    (("columns", "partition_by", "partition", "write"), _partition),
    (("partition", "write"), _strict),
    (("options",), _options),
    (("source", "transform", "reads", "write"), _rows),
    (("table", "reads"), _changes),
    (("source", "reads", "write", "partition"), _from_changes),
    (("transform", "partition"), _asks_for_one),
    (("transform", "gate"), _files),
    (("table", "schedule"), _schedule),
    (("schedule", "partition"), _ticks),
    (("source", "partition"), _own_files),
    (("publish", "partition_by", "partition"), _mark_done),
    (("publish", "partition"), _tag),
    (("spark",), _spark_place),
)
"""The fields that a check rests on, and the check."""
