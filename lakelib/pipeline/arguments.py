"""What a job is told on its command line, as frozen values. Nothing slow is loaded: what is wrong is said at once."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from lakelib.errors import InvalidInputError
from lakelib.pipeline.parser import (
    Surroundings,
    add_surroundings,
    make_parser,
    read_key,
    read_pairs,
    read_surroundings,
)
from lakelib.plan.at import parse_at

MODES = ("append", "upsert", "overwrite")
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Rows of files, as they are or filtered."""

    format: str
    paths: tuple[str, ...]
    options: Mapping[str, str]
    schema: str | None
    columns: tuple[str, ...] | None
    where: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileView:
    name: str
    format: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeView:
    name: str
    table: str
    at: int | str | datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Rows of a query over views of files and of the lake's tables."""

    text: str
    file_views: tuple[FileView, ...]
    lake_views: tuple[LakeView, ...]
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobArguments:
    """`write` are the keywords of the table's write; `partitions` is for an overwrite only."""

    table: str
    mode: str
    source: Files | Query
    partitions: str | Mapping[str, str | None]
    write: Mapping[str, Any] = field(repr=False)
    surroundings: Surroundings


def parse_job(mode: str | None, description: str, arguments: Sequence[str] | None) -> JobArguments:
    """Ends the process with exit code 2, and says why, if the arguments are wrong. A job without a mode of its own is
    told the mode, and takes queries only."""
    parser = _make_parser(mode, description)
    given = parser.parse_args(arguments)
    return _Reading(parser, given).job(mode or given.mode)


# The parser


def _make_parser(mode: str | None, description: str) -> argparse.ArgumentParser:
    parser = make_parser(description)
    if mode is None:
        parser.add_argument("--into", dest="table", required=True, metavar="TABLE", help="namespace.table to write to")
        parser.add_argument("--mode", choices=MODES, default="append", help="how its rows are written (append)")
    else:
        parser.add_argument("table", help="namespace.table to write to")
        _add_files(parser)
    _add_query(parser)
    _add_write(parser, takes_partitions=mode in (None, "overwrite"))
    add_surroundings(parser)
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "rows of files",
        "Parquet, CSV and JSON lines that need no --where are read by Arrow in Spark's tasks, past the JVM, from local"
        " files, S3 and HDFS alike.",
    )
    group.add_argument("--format", default="parquet", help="parquet, csv, json, or another one of Spark's (parquet)")
    group.add_argument("--path", nargs="+", action="extend", metavar="PATH", help="files, folders, or patterns of them")
    group.add_argument("--schema", help="the files' columns in DDL, such as 'id BIGINT, dt DATE'; only these are read")
    group.add_argument("--columns", help="names of the columns to take, with commas between; all if not given")
    group.add_argument("--where", help="a condition of Spark SQL: only the rows for which it is true are taken")


def _add_query(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("rows of a query", "One query in Spark SQL, over the views that are named here.")
    group.add_argument("--sql", help="the query")
    group.add_argument("--sql-file", metavar="FILE", help="a file that holds the query")
    group.add_argument(
        "--view", action="append", default=[], metavar="NAME=FORMAT:PATH", help="files as a view; may be repeated"
    )
    group.add_argument(
        "--lake-view",
        action="append",
        default=[],
        metavar="NAME=TABLE[@AT]",
        help="a table of the lake as a view, now or at a snapshot id, a tag:NAME or a moment; may be repeated",
    )
    group.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of Spark's reader for the files of this job, such as header=true; may be repeated",
    )


def _add_write(parser: argparse.ArgumentParser, *, takes_partitions: bool) -> None:
    group = parser.add_argument_group("how they are written")
    if takes_partitions:
        group.add_argument(
            "--partitions",
            nargs="+",
            metavar="WHICH",
            help=f"what an overwrite replaces: all (if not given), dynamic (the partitions that the rows are in), or"
            f" values of partition columns such as dt=2026-11-18; NULL is {NULL_PARTITION}",
        )
    group.add_argument(
        "--idempotency-key",
        metavar="APP:VERSION",
        help="names this piece of work: run again with the same key, the job writes nothing and succeeds",
    )
    group.add_argument(
        "--gate",
        metavar="SUITE",
        help="a file with the checks that the rows must pass before anybody sees them; the suite that the table"
        " requires judges without being named",
    )
    group.add_argument(
        "--property", action="append", default=[], metavar="NAME=VALUE", help="kept with the snapshot; may be repeated"
    )
    group.add_argument("--merge-schema", action="store_true", help="new columns and wider types extend the table")
    group.add_argument("--explicit-cast", action="store_true", help="values become the table's types if each fits")
    group.add_argument("--distribution", choices=("auto", "none", "hash"), default="auto", help="shuffle or not (auto)")
    group.add_argument(
        "--aux-order", metavar="COLUMNS", help="columns that decide which duplicate is newest, and are not stored"
    )


# What was given


class _Reading:
    """Turns parsed text into values, and says what is wrong with it."""

    def __init__(self, parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
        self._parser = parser
        self._given = given

    def job(self, mode: str) -> JobArguments:
        given = self._given
        return JobArguments(
            table=given.table,
            mode=mode,
            source=self._source(),
            partitions=self._partitions(mode),
            write=self._write(),
            surroundings=read_surroundings(self._parser, given),
        )

    def _source(self) -> Files | Query:
        given = self._given
        paths = getattr(given, "path", None)
        query = self._query_text()
        if (paths is None) == (query is None):
            wanted = "--path, --sql or --sql-file" if hasattr(given, "path") else "--sql or --sql-file"
            self._wrong(f"give one of {wanted}")
        options = read_pairs(self._parser, "option", given.option)
        if query is None:
            return self._files(paths or (), options)
        for name in ("schema", "columns", "where"):
            if getattr(given, name, None):
                self._wrong(f"--{name} is for --path: a query says it itself")
        return Query(
            text=query,
            file_views=tuple(self._file_view(text) for text in given.view),
            lake_views=tuple(self._lake_view(text) for text in given.lake_view),
            options=options,
        )

    def _files(self, paths: Sequence[str], options: Mapping[str, str]) -> Files:
        given = self._given
        if given.view or given.lake_view:
            self._wrong("--view and --lake-view are for --sql")
        return Files(
            format=given.format.lower(),
            paths=tuple(paths),
            options=options,
            schema=given.schema,
            columns=_names(given.columns),
            where=given.where,
        )

    def _query_text(self) -> str | None:
        given = self._given
        if given.sql is not None and given.sql_file is not None:
            self._wrong("give --sql or --sql-file, not both")
        if given.sql_file is None:
            return given.sql  # type: ignore[no-any-return]
        try:
            return Path(given.sql_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._wrong(f"--sql-file {given.sql_file} cannot be read: {error}")

    def _file_view(self, text: str) -> FileView:
        name, _, rest = text.partition("=")
        format, _, path = rest.partition(":")
        if not (name and format and path):
            self._wrong(f"--view {text!r} is not NAME=FORMAT:PATH")
        return FileView(name=name, format=format.lower(), path=path)

    def _lake_view(self, text: str) -> LakeView:
        name, _, rest = text.partition("=")
        table, has_at, at = rest.partition("@")
        if not (name and table) or (has_at and not at):
            self._wrong(f"--lake-view {text!r} is not NAME=TABLE or NAME=TABLE@AT")
        try:
            return LakeView(name=name, table=table, at=parse_at(at) if has_at else None)
        except InvalidInputError as error:
            self._wrong(f"--lake-view {text!r}: {error}")

    def _partitions(self, mode: str) -> str | Mapping[str, str | None]:
        which = getattr(self._given, "partitions", None)
        if which is None:
            return "all"
        if mode != "overwrite":
            self._wrong(f"--partitions is for an overwrite, and this is an {mode}")
        if which in (["all"], ["dynamic"]):
            return which[0]  # type: ignore[no-any-return]
        values = read_pairs(self._parser, "partitions", which)
        return {name: None if value == NULL_PARTITION else value for name, value in values.items()}

    def _write(self) -> dict[str, Any]:
        given = self._given
        return {
            "idempotency_key": given.idempotency_key and read_key(self._parser, given.idempotency_key),
            "properties": read_pairs(self._parser, "property", given.property),
            "merge_schema": given.merge_schema,
            "explicit_cast": given.explicit_cast,
            "distribution": given.distribution,
            "aux_order": _names(given.aux_order) or (),
            "gate": given.gate,
        }

    def _wrong(self, what: str) -> NoReturn:
        self._parser.error(what)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())
