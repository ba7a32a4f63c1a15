"""How work of the pipeline ends: what there is to tell of it, or the error that says who has to act."""

import re
import sys
from collections.abc import Iterator
from typing import Any, Protocol

from lakelib import InvalidInputError, LakeError, NotFoundError
from lakelib.dataclass import dataclass
from lakelib.errors import OTHER_EXIT_CODE, exit_code_of, family_of
from lakelib.pipeline.arguments import Surroundings

_TOLD_BY_JAVA = re.compile(r"(\[(DATA_SOURCE_NOT_FOUND)\] .*)")
"""What is wrong with a request and comes without a class of PySpark's own."""
_NOT_THERE = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")


class Outcome(Protocol):
    """What a job has to tell."""

    @property
    def exit_code(self) -> int: ...

    def facts(self) -> dict[str, Any]:
        """For programs, as JSON can hold it."""

    def lines(self) -> Iterator[str]:
        """For people."""


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
    """What a caller has to know of an error, and what was noted on it on the way."""
    known = as_known(error)
    told = " ".join((known.message if isinstance(known, LakeError) else str(known), *getattr(error, "__notes__", ())))
    if not isinstance(known, LakeError):
        return Failed(family=type(known).__name__, kind="other", message=told, remedy="", exit_code=OTHER_EXIT_CODE)
    return Failed(
        family=family_of(known), kind=known.kind, message=told, remedy=known.remedy, exit_code=exit_code_of(known)
    )


def as_known(error: Exception) -> Exception:
    """As an error of lakelib's, where it is known what it means."""
    if isinstance(error, LakeError):
        return error
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "pyspark":
        return InvalidInputError(
            "This takes Spark, which is not installed here.",
            kind="spark_missing",
            remedy='Install it: pip install "lakelib[spark]".',
        )
    return _from_spark(error) or error


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
    from lakelib.work.spark.told import error_told

    if not isinstance(error, PySparkException | Py4JJavaError):
        return None
    told = error_told(error)
    if told is not None:
        return told
    if isinstance(error, of_query | of_value):
        condition = error.getCondition() or ""
        kind = f"spark_{condition.partition('.')[0].lower() or 'refused'}"
        is_missing = condition.startswith(_NOT_THERE)
        family = NotFoundError if is_missing else InvalidInputError
        return family(str(error).partition("\n\nJVM stacktrace")[0].strip(), kind=kind)
    refused = _TOLD_BY_JAVA.search(str(error))
    return InvalidInputError(refused[1].strip(), kind=f"spark_{refused[2].lower()}") if refused else None


def note(around: Surroundings, text: str) -> None:
    """A word on stderr to people who read along."""
    if not around.quiet:
        print(text, file=sys.stderr, flush=True)
