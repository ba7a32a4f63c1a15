"""Pure. Values that are not what they have to be, told together: the first ones, and how many more there are."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import WrongValuesError
from lakelib.rows.convert import shown_row

MOST_COUNTED = 1000
"""Of a column so many are looked for."""
MOST_TOLD = 10

PlaceOf = Callable[[int], str]
"""How a row is named, by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongValue:
    """What is said of it comes before and behind the name of its row."""

    row: int
    before: str
    behind: str
    kind: str
    remedy: str
    sample: str = ""
    """What else is in the row."""

    def told(self, place_of: PlaceOf) -> str:
        return f"{self.before} {place_of(self.row)}{self.behind}"


def wrong_values(found: Sequence[WrongValue], batch: pa.RecordBatch | None, first_row: int = 0) -> WrongValuesError:
    """The error for what was found in a batch, whose first row has this number."""
    first, *others = sorted(found, key=lambda each: each.row)[:MOST_TOLD]
    sample = "" if batch is None else f" The row: {shown_row(batch, first.row)}."
    told = [replace(first, sample=sample), *others]
    return tell_wrong([replace(each, row=each.row + first_row) for each in told], len(found))


def tell_wrong(
    found: Sequence[WrongValue], count: int, place_of: PlaceOf = lambda row: f"row {row} (counted from 0)"
) -> WrongValuesError:
    """The first of them, in the order of their rows, of so many."""
    first, *others = found
    more = others_told([each.told(place_of) for each in others], count, is_least=count >= MOST_COUNTED)
    message = f"{first.told(place_of)}.{first.sample}{more}"
    return WrongValuesError(message, kind=first.kind, remedy=first.remedy, found=found, count=count)


def others_told(others: Sequence[str], count: int, *, is_least: bool) -> str:
    """Behind the first of so many, or of that many at least, the next ones; nothing if there are none."""
    if not others:
        return ""
    left = count - len(others) - 1
    more = f"; and {'at least ' if is_least else ''}{left:,} more" if left else ""
    return f" Wrong, too: {'; '.join(others)}{more}."
