"""A query over tables of the lake, in this process: its rows, or how it is carried out; and a prompt for people."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from lakelib.cli.command import Session, wrong_usage
from lakelib.cli.formats import write_rows
from lakelib.cli.read import choose_format, most_rows
from lakelib.cli.show import Answer, Sentence

_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How rows are shown."""

    format: str
    output: Path | None
    limit: int | None
    timing: bool
    values: Mapping[str, str]


def ask(
    session: Session,
    text: str | None,
    *,
    format: str | None,
    output: Path | None,
    limit: int | None,
    timing: bool,
    values: Mapping[str, str],
) -> Answer | None:
    """Carries a query out, or those that a person types."""
    asked = Asked(
        format=choose_format(session, format, output), output=output, limit=limit, timing=timing, values=values
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
    result = session.lake.sql(text, **asked.values)
    if result.asks_explanation:
        explained = result.explain()
        document = {each.name: getattr(explained, each.name) for each in fields(explained)}
        return Answer(document, Sentence(str(explained)))
    answer = write_rows(
        session, result, asked.format, most_rows(asked.limit, asked.format), asked.output, told=asked.limit is not None
    )
    if asked.timing or session.out.is_terminal:
        session.note(f"{time.monotonic() - start:.3f} s")
    return answer


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
