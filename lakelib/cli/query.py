"""Statements of SQL: a query's rows, or how it is carried out; what another statement has done, or
would do; and a prompt for people."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelib.cli.command import Session, wrong_usage
from lakelib.cli.formats import write_rows
from lakelib.cli.read import choose_format, most_rows
from lakelib.cli.show import Answer, Note, Sentence, tell
from lakelib.dataclass import dataclass
from lakelib.plan.sql_script import split_statements

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelib.ops.runtime import Runtime
    from lakelib.ops.sql_change import Change, Told
    from lakelib.ops.sql_plan import QueryExplanation, QueryPlan
    from lakelib.ops.sql_script import Step
    from lakelib.pipeline.arguments import Surroundings
    from lakelib.result import Result

_STANDARD_INPUT = "-"
_DRY = "Nothing was changed. --yes does it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How rows are shown, and what is asked of statements that change something."""

    format: str
    output: Path | None
    limit: int | None
    timing: bool
    values: Mapping[str, Any]
    yes: bool
    """Whether rows, tables and what is known of them may go."""
    together: bool
    """Whether what several statements change is published in one instant."""
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
    values: Mapping[str, Any],
    yes: bool,
    together: bool,
    options: Mapping[str, Any],
) -> Answer | None:
    """Carries statements out, those of a text, or that a person types: in this process, unless a master or a server is
    named."""
    format = choose_format(session, format, output)
    with _chosen_runtime(session, around) as runtime:
        asked = Asked(
            format=format,
            output=output,
            limit=limit,
            timing=timing,
            values=values,
            yes=yes,
            together=together,
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
    texts = split_statements(text)
    if len(texts) > 1 or (texts and asked.together):
        return _carry_out_all(session, texts, asked)
    start = time.monotonic()
    prepared = _prepared(text, asked)
    return prepared if isinstance(prepared, Answer) else _answer(session, _result(prepared, asked), asked, start)


def _answer(session: Session, result: "Result", asked: Asked, start: float) -> Answer | None:
    if result.asks_explanation:
        return Answer(_document(result.explain()), Sentence(str(result.explain())))
    answer = write_rows(
        session, result, asked.format, most_rows(asked.limit, asked.format), asked.output, told=asked.limit is not None
    )
    if asked.timing or (not session.is_piped and session.out.is_terminal):
        session.note(f"{time.monotonic() - start:.3f} s")
    return answer


def _prepared(text: str, asked: Asked) -> "QueryPlan | Told | Answer":
    """What was done, or is to be read. What takes something away is only looked at until it is told --yes."""
    from lakelib.ops.sql_change import Told
    from lakelib.ops.sql_plan import QueryPlan
    from lakelib.ops.sql_statements import carry_out, prepare  # they take long to load

    prepared = prepare(asked.runtime, text, asked.values, asked.options)
    if not isinstance(prepared, QueryPlan | Told) and prepared.takes_away and not asked.yes:
        return _previewed(prepared)
    return carry_out(prepared, asked.options)


def _result(done: "QueryPlan | Told", asked: Asked) -> "Result":
    from lakelib.ops.sql_frame import known_query
    from lakelib.ops.sql_plan import QueryPlan
    from lakelib.result import Result

    if isinstance(done, QueryPlan):
        done = replace(done, query=known_query(asked.runtime, done), most=most_rows(asked.limit, asked.format))
    elif asked.format == "table":
        done = replace(done, rows=_known_columns(done.rows))
    return Result(asked.runtime, done)


# Several


def _carry_out_all(session: Session, texts: Sequence[str], asked: Asked) -> Answer | None:
    """One after the other. If one takes something away none is carried out until that is told --yes."""
    from lakelib.ops.sql_script import check_script  # it takes long to load

    if asked.output is not None:
        wrong_usage("--output is for one statement")
    steps = check_script(asked.runtime, texts, asked.values, in_transaction=asked.together)
    changed = [each.changed for each in steps if each.changed is not None]
    if asked.options and len(set(changed)) < len(changed):
        wrong_usage("options are for one change of a table, and here are several of one")
    if any(each.takes_away for each in steps) and not asked.yes:
        told = [{"change": each.means} for each in steps]
        return Answer({"statements": told, "dry_run": True}, [*(Sentence(each.means) for each in steps), Note(_DRY)])
    if asked.together:
        _publish_together(session, steps, asked)
    else:
        _do_in_order(session, steps, asked)
    return None


def _do_in_order(session: Session, steps: "Sequence[Step]", asked: Asked) -> None:
    from lakelib.ops.sql_statements import carry_out, prepare

    for number, step in enumerate(steps):
        start = time.monotonic()
        options = asked.options if step.changed is not None else {}
        try:
            done = carry_out(prepare(asked.runtime, step.text, asked.values, options), options)
            _tell(session, _answer(session, _result(done, asked), asked, start))
        except BaseException:
            session.note(f"statement {number + 1} of {len(steps)}: those before it were carried out")
            raise


def _publish_together(session: Session, steps: "Sequence[Step]", asked: Asked) -> None:
    """Queries see what was staged before them; what was changed is told once it is published."""
    from lakelib.ops.sql_change import Told
    from lakelib.ops.sql_change import tell as tell_change

    staged = []
    with session.lake.transaction() as tx:
        for step in steps:
            start = time.monotonic()
            options = asked.options if step.changed is not None else {}
            done = tx.carry_out(step.text, options, asked.values, asked.runtime.session)
            if isinstance(done, Told) and step.changed is not None:
                staged.append((step, done.rows.column("statement")[0].as_py(), start))
            else:
                _tell(session, _answer(session, _result(done, asked), asked, start))
    for (step, word, start), snapshot in zip(staged, tx.snapshots, strict=True):
        told = tell_change(step.text, word, step.changed, snapshot)
        _tell(session, _answer(session, _result(told, asked), asked, start))


def _tell(session: Session, answer: Answer | None) -> None:
    if answer is not None:
        tell(session, answer)


def _previewed(change: "Change") -> Answer:
    """What would be done, and to how many rows, where that can be told."""
    from lakelib.ops.sql_revise import DeleteChange, ReviseChange

    explained = change.explain()
    effect = change.count() if isinstance(change, DeleteChange | ReviseChange) else None
    counted = [] if effect is None or not str(effect) else [Sentence(f"Rows: {effect}.")]
    document = _document(explained) | {"dry_run": True} | ({} if effect is None else effect.as_summary())
    return Answer(document, [Sentence(explained.change), *counted, Note(_DRY)])


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
