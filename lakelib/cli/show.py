"""What commands answer, and how it is laid out in one place: as a document for programs; for people as tables that fit
the terminal, fields below each other, sentences. And progress meanwhile."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lakelib.cli.command import Session
from lakelib.cli.values import escaped, escaped_lines
from lakelib.dataclass import dataclass
from lakelib.errors import LakeError
from lakelib.progress import Terminal, shown_elsewhere

_GAP = 2
_BETWEEN = 3
"""Between the columns of a table on a terminal."""
_SHORTEST_FOLD = 16
"""A long text is folded to no less than this: names in slices of a few letters cannot be read."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    right: bool = False
    optional: int = 0
    """Where the terminal is too narrow the column that is most so is left out, then the next."""
    fold: bool = False
    """Its text may go over several lines."""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Title:
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A word about what is seen, on stderr."""

    text: str


@dataclass(frozen=True, slots=True)
class Fields:
    """Names and values, a line each."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Listing:
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    empty: str = ""
    """The sentence in place of no rows."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Of a part of the work, on stderr."""

    message: str
    remedy: str


GAP = Sentence("")
Part = Title | Sentence | Note | Fields | Listing | Failure
Parts = Part | Sequence[Part]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command answers: a document for programs, and what people see, from top to bottom."""

    document: Any
    parts: Parts
    exit_code: int = 0
    failure: LakeError | None = None
    """What a part of the work ended in, whatever else was done."""


def tell(session: Session, answer: Answer) -> None:
    if session.json or session.csv:
        print_document(session, answer.document)
        return
    for part in answer.parts if isinstance(answer.parts, Sequence) else (answer.parts,):
        show(session, part)


def print_document(session: Session, document: Any) -> None:
    if session.csv:
        session.print_csv(document)
    else:
        session.print_json(document)


def show(session: Session, part: Part) -> None:
    match part:
        case Title(text):
            show_title(session, text)
        case Sentence(text):
            say(session, text)
        case Note(text):
            session.note(text)
        case Fields(pairs):
            show_fields(session, pairs)
        case Listing(columns, rows, empty):
            show_table(session, columns, rows, empty=empty)
        case Failure(message, remedy):
            session.say_failure(message, remedy)


def show_table(session: Session, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """A table for people. What has no room is named below it; without rows there is a sentence in its place.

    Whatever others have put into names and values, it does nothing to the terminal: so with all that is shown here."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not rows:
        session.note(empty)
        return
    rows = [[escaped(cell) for cell in row] for row in rows]
    shown, left_out, fits = _choose(columns, rows, session.out.width)
    table = Table(
        box=box.SIMPLE_HEAD if session.out.is_terminal else None,
        show_edge=False,
        pad_edge=False,
        padding=(0, _GAP, 0, 0) if not session.out.is_terminal else (0, 1),
        header_style="bold" if session.out.is_terminal else "",
    )
    for place in shown:
        column = columns[place]
        table.add_column(
            Text(escaped(column.name)),
            justify="right" if column.right else "left",
            no_wrap=not column.fold and fits,
            overflow="fold",
            min_width=min(_SHORTEST_FOLD, max(_width(row[place]) for row in rows)) if column.fold else None,
            style=column.style,
        )
    for row in rows:
        table.add_row(*(Text(row[place]) for place in shown))
    session.out.print(table)
    if left_out:
        session.note(f"left out in {session.out.width} columns: {', '.join(left_out)}; --json has all")


def show_fields(session: Session, pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values, a line each."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(style="bold" if session.out.is_terminal else "", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(escaped(name)), Text(escaped(value)))
    session.out.print(grid)


def show_title(session: Session, text: str) -> None:
    session.out.print(escaped(text), style="bold" if session.out.is_terminal else None, markup=False, highlight=False)


def say(session: Session, text: str) -> None:
    """A sentence about what was done."""
    session.out.print(escaped_lines(text), markup=False, highlight=False, soft_wrap=True)


Tell = Callable[[int, int | None], None]
"""Told how much is done, and of how much if that is known."""


@contextmanager
def working(session: Session, what: str) -> Iterator[Tell]:
    """Shows on stderr that something is under way, for how long, and how far it is, if somebody is watching."""
    if session.json or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with shown_elsewhere():
        shown = Terminal(what, session.err)
        try:
            yield shown.draw
        finally:
            shown.clear()


def _choose(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> tuple[list[int], list[str], bool]:
    """The places of the columns to show, the names of those that have no room, and whether the former have."""
    needed = [_needed(column, [row[place] for row in rows], width) for place, column in enumerate(columns)]
    shown = [place for place in range(len(columns)) if any(row[place] for row in rows) or not columns[place].optional]
    left_out: list[str] = []
    while (wanted := sum(needed[place] + _BETWEEN for place in shown) - _BETWEEN) > width:
        candidates = [place for place in shown if columns[place].optional]
        if not candidates:
            break
        worst = max(candidates, key=lambda place: (columns[place].optional, place))
        shown.remove(worst)
        left_out.insert(0, columns[worst].name)
    return shown, left_out, wanted <= width


def _needed(column: Column, texts: Sequence[str], width: int) -> int:
    """A text that may be folded would like half of the terminal."""
    longest = max(_width(text) for text in texts)
    return max(_width(column.name), min(longest, max(_SHORTEST_FOLD, width // 2)) if column.fold else longest)


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
