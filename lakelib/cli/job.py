"""Commands that schedulers start: what they are told of their surroundings, and how they tell how they ended.

A command reads its arguments into a frozen value first, so that what is wrong is said before anything slow is loaded.
Its work then gives an outcome, which is told in one place: as a summary for logs, as sentences, or as JSON.
"""

import inspect
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from lakelib.cli.arguments import check_folder, option
from lakelib.cli.command import MayMake, Session, command, print_failure, wrong_usage
from lakelib.cli.show import Answer, Parts, print_document, tell
from lakelib.dataclass import dataclass
from lakelib.pipeline.arguments import Surroundings
from lakelib.pipeline.outcome import Outcome, as_known, explain_failure

Options = dict[str, tuple[Any, Any]]
"""What several commands are told alike, by parameter: how it is annotated, and its default."""

_PANEL = "Where it runs, and what it tells"
_REMOTE = "SPARK_REMOTE"
_SURROUNDINGS: dict[str, Any] = {
    "master": Annotated[
        str | None,
        option(metavar="URL", help="Spark's master, where spark-submit names none. (SPARK_MASTER)", panel=_PANEL),
    ],
    "remote": Annotated[
        str | None,
        option(
            metavar="sc://HOST:PORT",
            help=f"A Spark Connect server, of which this process is a client. ({_REMOTE}, which hides tokens)",
            panel=_PANEL,
        ),
    ],
    "spark_conf": Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="Settings of the session on that server (spark.sql.…), as an object of JSON.",
            panel=_PANEL,
        ),
    ],
    "result": Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="Where to write what was done, or the error, as JSON; stdout then has a summary for logs.",
            panel=_PANEL,
        ),
    ],
    "progress": Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Tell on stderr how far the work is; on a terminal that is so.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a command is asked for, once its arguments are understood."""

    arguments: Any
    """A value of `pipeline.arguments`."""
    work: Callable[[], Outcome]
    table: str | None = None
    """The one that it is about, if it is about one."""
    parts: Callable[[Any], Parts] | None = None
    """What people see of its outcome by hand, where that is not the summary."""
    document: Callable[[Any], Any] | None = None
    """What `--json` prints of its outcome, where that is not its facts; None: nothing."""
    make: MayMake = MayMake.NEVER
    """Whether it makes a lake where there is none."""


def job_command(
    app: typer.Typer, name: str, *, panel: str, options: Options | None = None
) -> Callable[[Callable[..., Job | Answer | None]], Any]:
    """Makes a function `(session, surroundings, …)`, which reads the arguments, the command of that name. What it is
    told besides are the `options`. What is no job is carried out by then."""

    def register(read: Callable[..., Job | Answer | None]) -> Callable[..., Job | Answer | None]:
        def work(session: Session, **given: Any) -> Answer | None:
            around = _read_surroundings(session, {option: given.pop(option) for option in _SURROUNDINGS})
            job = read(session, around, **given)
            if not isinstance(job, Job):
                return job
            code = (session.start.carry_out or carry_out)(session, session.start.job or name, job)
            if code:
                raise typer.Exit(code)
            return None

        work.__signature__ = _signature(read, options or {})  # type: ignore[attr-defined]
        work.__doc__ = read.__doc__
        command(app, name, panel=panel)(work)
        return read

    return register


def _signature(read: Callable[..., Any], options: Options) -> inspect.Signature:
    first, _, *own = inspect.signature(read, eval_str=True).parameters.values()
    told = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
    more = options | {option: (kind, None) for option, kind in _SURROUNDINGS.items()}
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [each.replace(kind=keyword) for each in told]
    parameters += [
        inspect.Parameter(key, keyword, annotation=kind, default=value) for key, (kind, value) in more.items()
    ]
    return inspect.Signature([first, *parameters])


def _read_surroundings(session: Session, given: Mapping[str, Any]) -> Surroundings:
    master, remote, file = given["master"], given["remote"], given["spark_conf"]
    if master and remote:
        wrong_usage("--master and --remote name two places for one session")
    remote = remote or (None if master else os.environ.get(_REMOTE) or None)
    if remote is not None and not remote.startswith("sc://"):
        wrong_usage(f"--remote, or {_REMOTE}, is no address that begins with sc://")
    if file and remote is None:
        # An argument that PySpark would start Spark with, for all to see.
        wrong_usage(
            "--spark-conf is for a server (--remote): spark-submit and PYSPARK_SUBMIT_ARGS have --properties-file"
        )
    return Surroundings(
        warehouse=session.common.warehouse,
        catalog=session.common.catalog,
        master=master or (None if remote else os.environ.get("SPARK_MASTER")),
        remote=remote,
        spark_conf=_read_settings(file),
        result=check_folder("--result", given["result"]),
        progress=given["progress"],
        quiet=session.json or session.csv,
    )


def _read_settings(file: Path | None) -> dict[str, str]:
    """What is in the file is not told: it may be secret."""
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        wrong_usage(f"--spark-conf {file} cannot be read as JSON")
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        wrong_usage(f"--spark-conf {file} is no object of names and texts")
    return found


# How it ends


def carry_out(session: Session, name: str, job: Job) -> int:
    """Does the work, tells how it ended, and gives the exit code."""
    start = time.monotonic()
    result = job.arguments.surroundings.result
    is_logged = result is not None or session.start.job is not None
    outcome: Outcome
    try:
        session.prepare(make=job.make)
        outcome = job.work()
    except Exception as error:
        if not is_logged:
            return session.explain_failure(as_known(error))
        outcome = explain_failure(error)
        if session.common.debug or (outcome.kind == "other" and not session.json):
            traceback.print_exception(error)
    seconds = time.monotonic() - start
    if result is not None:
        _write_whole(result, json.dumps(_result(name, job, outcome, seconds), indent=2) + "\n")
    if session.json or session.csv:
        _print_document(session, job, outcome)
    elif is_logged or job.parts is None:
        told = session.spoken(summary(name, job.table, outcome, seconds))
        print(told, file=sys.stderr if outcome.exit_code else sys.stdout, flush=True)
    else:
        tell(session, Answer(None, job.parts(outcome)))
    return outcome.exit_code


def _result(name: str, job: Job, outcome: Outcome, seconds: float) -> dict[str, Any]:
    about = {"job": name} if job.table is None else {"job": name, "table": job.table}
    ended = {"ok": outcome.exit_code == 0, "exit_code": outcome.exit_code}
    return {**about, **ended, **outcome.facts(), "seconds": round(seconds, 3)}


def _print_document(session: Session, job: Job, outcome: Outcome) -> None:
    """Of work of which a part failed there is both: what was done, and the first error."""
    facts = outcome.facts()
    if set(facts) != {"error"}:
        document = facts if job.document is None else job.document(outcome)
        if document is not None:
            print_document(session, document)
    if "error" not in facts:
        return
    error = facts["error"]
    if session.json:
        print_failure(outcome.exit_code, **error)
    else:
        session.say_failure(error["message"], error["remedy"])


def summary(name: str, table: str | None, outcome: Outcome, seconds: float) -> str:
    """What logs have of it."""
    lines = [name if table is None else f"{name} {table}", *outcome.lines(), f"seconds     {seconds:.1f}"]
    return "\n  ".join(map(_indented, lines))


def _indented(text: str) -> str:
    """What others have written into names and reasons begins no line of its own in a log, and paints no terminal."""
    lines = ("".join(each if each.isprintable() else ascii(each)[1:-1] for each in line) for line in text.split("\n"))
    return "\n              ".join(lines)


def _write_whole(path: Path, text: str) -> None:
    """The file is complete from the moment it is there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
