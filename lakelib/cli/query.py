"""Statements of SQL, in this process: a query's rows, or how it is carried out; what another statement has done, or
would do; and a prompt for people."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelib.cli.command import Session, wrong_usage
from lakelib.cli.formats import write_rows
from lakelib.cli.read import choose_format, most_rows
from lakelib.cli.show import Answer, Note, Sentence

if TYPE_CHECKING:
    from lakelib.ops.sql_plan import QueryExplanation
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


def ask(
    session: Session,
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
    """Carries a statement out, or those that a person types."""
    asked = Asked(
        format=choose_format(session, format, output),
        output=output,
        limit=limit,
        timing=timing,
        values=values,
        yes=yes,
        options={name: value for name, value in options.items() if value},
    )
    if text is None and sys.stdin.isatty():
        from lakelib.cli.prompt import converse

        converse(session, lambda typed: _carry_out(session, typed, asked))
        return None
    if text is None or text == _STANDARD_INPUT:
        text = sys.stdin.read()
    return _carry_out(session, text, asked)


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
    from lakelib.ops.sql_plan import QueryPlan
    from lakelib.ops.sql_statements import carry_out, prepare  # they take long to load
    from lakelib.result import Result

    runtime = session.lake.runtime
    prepared = prepare(runtime, text, asked.values)
    if not isinstance(prepared, QueryPlan | Told) and prepared.takes_away and not asked.yes:
        explained = prepared.explain()
        note = Note("Nothing was changed. --yes does it.")
        return Answer(_document(explained) | {"dry_run": True}, [Sentence(explained.change), note])
    return Result(runtime, carry_out(prepared, asked.options))


def _document(explained: "QueryExplanation") -> dict[str, Any]:
    return {each.name: getattr(explained, each.name) for each in fields(explained)}


def query_text(text: str | None, sql: str | None, file: Path | None) -> str | None:
    """What is asked, however it was given; None: not yet."""
    given = [each for each in (text, sql, file) if each is not None]
    if len(given) > 1:
        wrong_usage("give the query once: as an argument, by --sql, or by --sql-file")
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
