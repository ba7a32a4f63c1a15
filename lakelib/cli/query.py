"""Statements of SQL: a query's rows, or how it is carried out; what another statement has done, or
would do; and a prompt for people."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelib.cli.command import Session, wrong_usage
from lakelib.cli.formats import write_rows
from lakelib.cli.read import choose_format, most_rows
from lakelib.cli.show import Answer, Note, Sentence
from lakelib.dataclass import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelib.ops.runtime import Runtime
    from lakelib.ops.sql_change import Change
    from lakelib.ops.sql_plan import QueryExplanation
    from lakelib.pipeline.arguments import Surroundings
    from lakelib.result import Result

_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How rows are shown, and what is asked of statements that change something."""

    format: str
    output: Path | None
    limit: int | None
    timing: bool
    values: Mapping[str, str]
    yes: bool
    """Whether rows, tables and what is known of them may go."""
    options: Mapping[str, Any]
    runtime: "Runtime"
    """The lake's, and whether Spark carries statements out."""


def ask(
    session: Session,
    around: "Surroundings",
    text: str | None,
    *,
    format: str | None,
    output: Path | None,
    limit: int | None,
    timing: bool,
    values: Mapping[str, str],
    yes: bool,
    options: Mapping[str, Any],
) -> Answer | None:
    """Carries a statement out, or those that a person types: in this process, unless a master or a server is named."""
    format = choose_format(session, format, output)
    with _chosen_runtime(session, around) as runtime:
        asked = Asked(
            format=format,
            output=output,
            limit=limit,
            timing=timing,
            values=values,
            yes=yes,
            options={name: value for name, value in options.items() if value},
            runtime=runtime,
        )
        if text is None and sys.stdin.isatty():
            from lakelib.cli.prompt import converse

            converse(session, lambda typed: _carry_out(session, typed, asked))
            return None
        if text is None or text == _STANDARD_INPUT:
            text = sys.stdin.read()
        return _carry_out(session, text, asked)


@contextmanager
def _chosen_runtime(session: Session, around: "Surroundings") -> "Iterator[Runtime]":
    """A job is carried out by Spark, wherever."""
    given, runtime = session.start.spark, session.lake.runtime
    if not (around.master or around.remote or given or session.start.job):
        yield runtime
        return
    from lakelib.pipeline.sessions import watched_session

    with watched_session("sql", around, given) as spark:
        yield replace(runtime, session=spark)


def _carry_out(session: Session, text: str, asked: Asked) -> Answer | None:
    start = time.monotonic()
    result = _carried_out(session, text, asked)
    if isinstance(result, Answer):
        return result
    if result.asks_explanation:
        return Answer(_document(result.explain()), Sentence(str(result.explain())))
    answer = write_rows(
        session, result, asked.format, most_rows(asked.limit, asked.format), asked.output, told=asked.limit is not None
    )
    if asked.timing or (not session.is_piped and session.out.is_terminal):
        session.note(f"{time.monotonic() - start:.3f} s")
    return answer


def _carried_out(session: Session, text: str, asked: Asked) -> "Result | Answer":
    """What takes something away is only looked at until it is told --yes."""
    from lakelib.ops.sql_change import Told
    from lakelib.ops.sql_frame import known_query
    from lakelib.ops.sql_plan import QueryPlan
    from lakelib.ops.sql_statements import carry_out, prepare  # they take long to load
    from lakelib.result import Result

    runtime = asked.runtime
    prepared = prepare(runtime, text, asked.values, asked.options)
    if not isinstance(prepared, QueryPlan | Told) and prepared.takes_away and not asked.yes:
        return _previewed(prepared)
    done = carry_out(prepared, asked.options)
    if isinstance(done, QueryPlan):
        done = replace(done, query=known_query(runtime, done), most=most_rows(asked.limit, asked.format))
    elif asked.format == "table":
        done = replace(done, rows=_known_columns(done.rows))
    return Result(runtime, done)


def _previewed(change: "Change") -> Answer:
    """What would be done, and to how many rows, where that can be told."""
    from lakelib.ops.sql_revise import DeleteChange, ReviseChange

    explained = change.explain()
    effect = change.count() if isinstance(change, DeleteChange | ReviseChange) else None
    counted = [] if effect is None or not str(effect) else [Sentence(f"Rows: {effect}.")]
    document = _document(explained) | {"dry_run": True} | ({} if effect is None else effect.as_summary())
    return Answer(document, [Sentence(explained.change), *counted, Note("Nothing was changed. --yes does it.")])


def _known_columns(rows: "pa.Table") -> "pa.Table":
    """For people, without those that have nothing to tell."""
    names = [name for name in rows.column_names if rows.column(name).null_count < rows.num_rows]
    return rows.select(names) if rows.num_rows else rows


def _document(explained: "QueryExplanation") -> dict[str, Any]:
    return {each.name: getattr(explained, each.name) for each in fields(explained)}


def query_text(text: str | None, sql: str | None, file: Path | None) -> str | None:
    """What is asked, however it was given; None: not yet."""
    given = [each for each in (text, sql, file) if each is not None]
    if len(given) > 1:
        wrong_usage("give the query once: as an argument, by --sql, or by --sql-file")
    if text is not None and text.endswith(".sql") and Path(text).is_file():
        wrong_usage(f"{text} is a file: give it by --sql-file")
    if file is None:
        return text if sql is None else sql
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        wrong_usage(f"--sql-file {file} cannot be read: {error}")


def refuse(given: Mapping[str, tuple[Any, Any]], meant: str) -> None:
    """Ends the command where options have other values than their defaults that are for something else."""
    for name, (value, default) in given.items():
        if value != default:
            wrong_usage(f"--{name.replace('_', '-')} is for {meant}")
