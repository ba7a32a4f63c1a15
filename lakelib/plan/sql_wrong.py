"""Pure. What is said of a text that is wrong, and where in it that stands."""

from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError

from lakelib.errors import InvalidInputError, OnlySparkError
from lakelib.plan.local_translator import first_column
from lakelib.plan.sqltext import quoted, shortened

SAYS_WHAT = "Tables are called namespace.table; docs/sql.md says which statements there are, and what is known in them."
_SAYS_WHAT_IS_KNOWN = (
    "docs/sql.md says what is known here, and what Spark knows besides. What day or time it is has to be said: bind it "
    "as a parameter."
)
_ON_NAMES = ("Name it with its table before it.", "Name one that is there; a text stands in single quotes.")


def refused(tree: exp.Expr) -> InvalidInputError:
    """What to say of a statement that is of no kind that there is."""
    if isinstance(tree, exp.Condition | exp.Alias):
        word = quoted(tree)
    else:
        word = (str(tree.this) if isinstance(tree, exp.Command) else type(tree).__name__).upper()
    return InvalidInputError(
        f"{word} is no statement that is known here{place_of(tree)}.", kind="sql_refused", remedy=SAYS_WHAT
    )


def unknown_sql(node: exp.Expr) -> InvalidInputError:
    """What is said of a part that no engine is given."""
    return InvalidInputError(
        f"{quoted(node)} is not known in SQL on the lake{place_of(node)}.", kind="unknown_sql", remedy=SAYS_WHAT
    )


def place_of(node: exp.Expr) -> str:
    """Where it stands in the text, as messages say it."""
    places = [each.meta for each in node.walk() if "line" in each.meta]
    first = min(places, key=lambda place: place["start"], default=None)
    return place_in(first["line"], first_column(first)) if first else ""


def place_in(line: int | None, column: int | None) -> str:
    return "" if line is None else f" (line {line}, column {column})"


def no_sql(text: str, error: Exception, remedy: str = SAYS_WHAT) -> InvalidInputError:
    details: dict[str, Any] = next(iter(getattr(error, "errors", ())), {}) if isinstance(error, ParseError) else {}
    near = f", near {shortened(details['highlight'])!r}" if details.get("highlight") else ""
    place = place_in(details.get("line"), details.get("col"))
    what = _in_words(str(details.get("description") or ""))
    return InvalidInputError(
        f"{shortened(text.strip())!r} is not SQL{place}{near}: {what}.", kind="invalid_sql", remedy=remedy
    )


def _in_words(description: str) -> str:
    """What the parser says, without its own classes."""
    if not description:
        return "it cannot be read; perhaps a quote or a comment does not end"
    if description.startswith("Required keyword"):
        return "something is missing there"
    return description.partition(" but got <")[0].rstrip(".")


def not_one(count: int) -> InvalidInputError:
    if count == 0:
        return InvalidInputError("There is no statement in the text.", kind="invalid_sql", remedy=SAYS_WHAT)
    return InvalidInputError(
        f"There are {count} statements, and one is run.",
        kind="invalid_sql",
        remedy="Run them one after the other. In Python a transaction publishes what several do at once: tx.sql(…).",
    )


def unknown_here(error: OnlySparkError) -> InvalidInputError:
    """What takes Spark in a transform is not known here: for what is wrong on Spark, too, it is said what that is."""
    place = place_in(error.line, error.column)
    if error.kind == OnlySparkError.default_kind:
        return InvalidInputError(
            f"{error.message} is not known in SQL on the lake{place}.",
            kind="unknown_sql",
            remedy=error.remedy or _SAYS_WHAT_IS_KNOWN,
        )
    return InvalidInputError(
        f"The query has {error.message}{place}.",
        kind=error.kind,
        remedy=error.remedy or _ON_NAMES[error.kind == "unknown_column"],
    )


def too_deep() -> InvalidInputError:
    return InvalidInputError(
        "The query is nested too deeply.", kind="invalid_sql", remedy="Use WITH, or IN for many values."
    )
