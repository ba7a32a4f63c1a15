"""Pure. Small tables for notebooks: everything that is shown is escaped, and no more than a screen of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from html import escape
from itertools import islice
from typing import Any, TypeVar

Item = TypeVar("Item")

MOST_ROWS = 20
_MOST_CHARACTERS = 200


def html_table(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]], total: int | None = None) -> str:
    """A title and a table of the first rows; `total` is how many there are, if that is known."""
    shown = list(islice(rows, MOST_ROWS + 1))
    more = "" if len(shown) <= MOST_ROWS else f"<p>… of {total:,}</p>" if total else "<p>…</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown[:MOST_ROWS])
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if shown else ""
    return f"<div><p>{escape(title)}</p>{table}{more}</div>"


def _cell(value: Any) -> str:
    text = value_text(value)
    return f"<td>{escape(text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + '…')}</td>"


def value_text(value: Any) -> str:
    """As people read it."""
    match value:
        case None:
            return ""
        case bool():
            return str(value)
        case int():
            return f"{value:,}"
        case datetime():
            return value.isoformat(sep=" ", timespec="seconds")
        case Mapping():
            return ", ".join(f"{name}={part}" for name, part in value.items())
    return str(value)


class Listing(list[Item]):
    """A list of values with the same fields, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        first = self[0] if self else None
        if first is None or isinstance(first, type) or not is_dataclass(first):
            return html_table(repr(list(self)), (), ())
        names = [field.name for field in fields(first) if field.repr]
        rows = ([getattr(each, name) for name in names] for each in self)
        return html_table(f"{len(self):,} × {type(first).__name__}", names, rows, len(self))
