"""Pure. Values that are not what they have to be, told together: the first ones, and how many more there are. And text
that is no UTF-8: Arrow carries it along, and whoever reads it fails."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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


# Texts that are none


def has_text(kind: pa.DataType) -> bool:
    """Whether values of the Arrow type of a column hold text, however deep inside."""
    if pa.types.is_nested(kind):
        return any(has_text(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pa.types.is_string(kind))


def wrong_texts(array: pa.Array, most: int) -> list[tuple[int, bytes]]:
    """The first rows that hold text which is no UTF-8, and those texts."""
    found: list[tuple[int, bytes]] = []
    start = 0
    while len(found) < most and (wrong := first_wrong_text(array.slice(start))) is not None:
        found.append((start + wrong[0], wrong[1]))
        start += wrong[0] + 1
    return found


def first_wrong_text(array: pa.Array) -> tuple[int, bytes] | None:
    """The first row that holds text which is no UTF-8, and that text; None if there is none. What a NULL hides is not
    looked at."""
    if not has_text(array.type):
        return None
    if pa.types.is_struct(array.type):
        return min(filter(None, map(first_wrong_text, array.flatten())), default=None, key=lambda found: found[0])
    if pa.types.is_map(array.type):
        key, item = (pa.field(name, kind) for name, kind in (("k", array.type.key_type), ("v", array.type.item_type)))
        array = array.cast(pa.list_(pa.struct([key.with_nullable(False), item])))
    if pa.types.is_list(array.type):
        found = first_wrong_text(pc.list_flatten(array))
        return None if found is None else (pc.list_parent_indices(array)[found[0]].as_py(), found[1])
    return None if _is_ascii(array) or _is_utf8(array) else _first_wrong_row(array)


def _is_ascii(array: pa.Array) -> bool:
    """Whether all bytes that the array spans are ASCII: that is known long before each value was looked at."""
    _, offsets, data = array.buffers()
    if not len(array) or data is None:
        return True
    first, last = (
        int(np.frombuffer(offsets, "<i4", 1, 4 * place)[0]) for place in (array.offset, array.offset + len(array))
    )
    return bool(np.frombuffer(data, np.int8, last - first, first).min(initial=0) == 0)


def _is_utf8(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _first_wrong_row(array: pa.Array) -> tuple[int, bytes]:
    good, bad = 0, len(array)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if _is_utf8(array.slice(good, middle - good)) else (good, middle)
    return good, array.slice(good, 1).cast(pa.binary())[0].as_py() or b""
