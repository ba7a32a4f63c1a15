"""What a job tells when it ends: a summary for people, a file of JSON for its caller, and an exit code."""

import json
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import lakelib
from lakelib import LakeError, Snapshot
from lakelib.errors import OTHER_EXIT_CODE, exit_code_of, family_of

_TOLD_BY_JAVA = re.compile(r"(\[(DATA_SOURCE_NOT_FOUND)\] .*)")
"""What is wrong with a request and comes without a class of PySpark's own."""
_NOT_THERE = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class Outcome(Protocol):
    """What a job has to tell."""

    @property
    def exit_code(self) -> int: ...

    def facts(self) -> dict[str, Any]:
        """For programs, as JSON can hold it."""

    def lines(self) -> Iterator[str]:
        """For people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One commit that was published."""

    snapshot: Snapshot
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        snapshot, summary = self.snapshot, self.snapshot.summary
        return {
            "snapshot": snapshot.id,
            "kind": snapshot.kind,
            "commit": str(snapshot.commit_id),
            "committed_at": snapshot.committed_at.isoformat(),
            "replayed": snapshot.replayed,
            **{name: summary.get(name, 0) for name in _COUNTS},
        }

    def lines(self) -> Iterator[str]:
        facts = self.facts()
        again = " (published before: nothing was written now)" if self.snapshot.replayed else ""
        yield f"snapshot    {facts['snapshot']}, {facts['kind']}{again}"
        yield f"rows in     {facts['rows_in']:,}"
        yield f"written     {facts['rows_written']:,} rows, {facts['deletes_written']:,} deletes"
        yield f"files       {facts['files_added']:,} added, {facts['files_removed']:,} removed"
        yield f"bytes       {readable_bytes(facts['bytes_added'])} added"
        yield f"partitions  {facts['partitions']:,}"


_COUNTS = (
    "rows_in",
    "rows_written",
    "deletes_written",
    "files_added",
    "files_removed",
    "bytes_added",
    "partitions",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    family: str
    kind: str
    message: str
    remedy: str
    exit_code: int

    def facts(self) -> dict[str, Any]:
        error = {"family": self.family, "kind": self.kind, "message": self.message, "remedy": self.remedy}
        return {"error": error}

    def lines(self) -> Iterator[str]:
        yield f"error       {self.family}, {self.kind}"
        yield f"            {self.message}"
        if self.remedy:
            yield f"remedy      {self.remedy}"


def explain_failure(error: Exception) -> Failed:
    """What a caller has to know of an error, and what was noted on it on the way. Of one that nobody expects, the trace
    goes to stderr."""
    known = error if isinstance(error, LakeError) else _from_spark(error)
    notes = getattr(error, "__notes__", ())
    if known is None:
        traceback.print_exception(error, file=sys.stderr)
        return Failed(
            family=type(error).__name__,
            kind="other",
            message=" ".join((str(error), *notes)),
            remedy="",
            exit_code=OTHER_EXIT_CODE,
        )
    return Failed(
        family=family_of(known),
        kind=known.kind,
        message=" ".join((known.message, *notes)),
        remedy=known.remedy,
        exit_code=exit_code_of(known),
    )


def _from_spark(error: Exception) -> LakeError | None:
    """The error of lakelib's that a task told Spark, or what Spark says of a query or a path that is wrong."""
    if "pyspark" not in sys.modules:
        return None
    from py4j.protocol import Py4JJavaError  # jobs that need no Spark do not wait for it
    from pyspark.errors import (
        AnalysisException,
        ArithmeticException,
        DateTimeException,
        IllegalArgumentException,
        NumberFormatException,
        ParseException,
        PySparkException,
    )

    of_query = AnalysisException | ParseException | IllegalArgumentException
    of_value = ArithmeticException | DateTimeException | NumberFormatException
    from lakelib.distribute.told import error_told

    if not isinstance(error, PySparkException | Py4JJavaError):
        return None
    told = error_told(error)
    if told is not None:
        return told
    if isinstance(error, of_query | of_value):
        condition = error.getCondition() or ""
        kind = f"spark_{condition.partition('.')[0].lower() or 'refused'}"
        is_missing = condition.startswith(_NOT_THERE)
        family = lakelib.NotFoundError if is_missing else lakelib.InvalidInputError
        return family(str(error).partition("\n\nJVM stacktrace")[0].strip(), kind=kind)
    refused = _TOLD_BY_JAVA.search(str(error))
    return lakelib.InvalidInputError(refused[1].strip(), kind=f"spark_{refused[2].lower()}") if refused else None


def run_told(job: str, table: str | None, result: Path | None, work: Callable[[], Outcome]) -> int:
    """Does the work, tells how it ended, and gives the exit code. `table` is the one that the job is about, if it is
    about one."""
    start = time.monotonic()
    outcome: Outcome
    try:
        outcome = work()
    except Exception as error:
        outcome = explain_failure(error)
    tell(outcome, job, table, time.monotonic() - start, result)
    return outcome.exit_code


def tell(outcome: Outcome, job: str, table: str | None, seconds: float, result: Path | None) -> None:
    """Success goes to stdout, failure to stderr; the file is complete from the moment it is there."""
    if result is not None:
        about = {"job": job} if table is None else {"job": job, "table": table}
        facts = {**about, "ok": outcome.exit_code == 0, "exit_code": outcome.exit_code}
        _write_whole(result, json.dumps({**facts, **outcome.facts(), "seconds": round(seconds, 3)}, indent=2) + "\n")
    lines = [job if table is None else f"{job} {table}", *outcome.lines(), f"seconds     {seconds:.1f}"]
    print("\n  ".join(map(_indented, lines)), file=sys.stdout if outcome.exit_code == 0 else sys.stderr, flush=True)


def _indented(text: str) -> str:
    """What others have written into names and reasons begins no line of its own in a log, and paints no terminal."""
    lines = ("".join(each if each.isprintable() else ascii(each)[1:-1] for each in line) for line in text.split("\n"))
    return "\n              ".join(lines)


def _write_whole(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def readable_bytes(count: float) -> str:
    for unit in _UNITS[:-1]:
        if count < 1000:
            return f"{count:,} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} {_UNITS[-1]}"
