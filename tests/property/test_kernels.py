"""The row kernels, compared with plain Python: dicts, sorted lists and a textbook XXH64."""

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelib.rows.hash import hash_prefixes, key_hashes
from lakelib.rows.merge import arrange_window, keep_newest, merge_windows
from lakelib.rows.sort import group_order, newest_order, stable_order

ALL = 2**64 - 1
P1, P2, P3, P4, P5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

Row = tuple[Any, ...]

# Keys come from few values, so that equal ones are common; bytes from few symbols, so that prefixes and NULs are.
# A part is longer than what is compared word by word.
LONG_PART = "x" * 250
BYTE_PARTS = [b"\x00", b"a", b"\xff", b"common-prefix-", LONG_PART.encode()]
SHORT_BYTES = st.lists(st.sampled_from(BYTE_PARTS), max_size=4).map(b"".join)
TEXT_PARTS = ["\x00", "a", "é", "😀", "\uffff", "common-prefix-", LONG_PART]
SHORT_TEXT = st.lists(st.sampled_from(TEXT_PARTS), max_size=4).map("".join)


def integers(bits: int) -> st.SearchStrategy[int]:
    top = 1 << (bits - 1)
    return st.sampled_from([-top, -1, 0, 1, 2, top - 1]) | st.integers(-top, top - 1)


KEY_TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "tinyint": (pa.int8(), integers(8)),
    "smallint": (pa.int16(), integers(16)),
    "int": (pa.int32(), integers(32)),
    "bigint": (pa.int64(), integers(64)),
    "date": (pa.date32(), integers(32)),
    "timestamp": (pa.timestamp("us", "UTC"), integers(64)),
    "timestamp_ntz": (pa.timestamp("us"), integers(64)),
    "decimal": (pa.decimal128(38, 0), st.sampled_from([-(2**64), -1, 0, 1, 2**64, 10**38 - 1]) | integers(126)),
    "string": (pa.string(), SHORT_TEXT),
    "binary": (pa.binary(), SHORT_BYTES),
}
ORDER_TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    name: (kind, st.none() | values) for name, (kind, values) in KEY_TYPES.items()
} | {
    "double": (
        pa.float64(),
        st.none() | st.sampled_from([math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0]) | st.floats(),
    ),
    "float": (pa.float32(), st.none() | st.sampled_from([math.nan, 0.0, -0.0]) | st.floats(width=32)),
}


def column(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """An array that starts in the middle of its buffers, as slices do."""
    padded = [None, *values, None]
    if pa.types.is_date32(kind):
        return pa.array(padded, pa.int32()).cast(kind).slice(1, len(values))
    if pa.types.is_decimal(kind):
        padded = [None if value is None else Decimal(value) for value in padded]
    return pa.array(padded, kind).slice(1, len(values))


def columns(kinds: Sequence[pa.DataType], rows: Sequence[Row]) -> list[pa.Array]:
    return [column(kind, [row[at] for row in rows]) for at, kind in enumerate(kinds)]


def rank(value: Any) -> tuple[Any, ...]:
    """A tuple that compares as lakelib orders values: NULL lowest, NaN highest."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value.encode() if isinstance(value, str) else value)


def ranks(row: Row) -> tuple[Any, ...]:
    return tuple(rank(value) for value in row)


@st.composite
def typed_rows(
    draw: st.DrawFn, types: dict[str, Any], min_columns: int
) -> tuple[list[pa.DataType], st.SearchStrategy[Row]]:
    """Some columns, and a strategy for their rows which repeats itself."""
    chosen = draw(st.lists(st.sampled_from(sorted(types)), min_size=min_columns, max_size=3))
    pools = [draw(st.lists(types[name][1], min_size=1, max_size=5)) for name in chosen]
    return [types[name][0] for name in chosen], st.tuples(*(st.sampled_from(pool) for pool in pools))


@st.composite
def keyed_rows(draw: st.DrawFn) -> tuple[list[pa.DataType], list[pa.DataType], list[tuple[Row, Row]]]:
    key_kinds, keys = draw(typed_rows(KEY_TYPES, 1))
    order_kinds, orders = draw(typed_rows(ORDER_TYPES, 0))
    return key_kinds, order_kinds, draw(st.lists(st.tuples(keys, orders), max_size=40))


def newest_positions(rows: Sequence[tuple[Row, Row]]) -> list[int]:
    """The model: the position of each key's newest row, in key order."""
    newest: dict[tuple[Any, ...], int] = {}
    for position, (key, order) in enumerate(rows):
        held = newest.get(ranks(key))
        if held is None or ranks(order) >= ranks(rows[held][1]):
            newest[ranks(key)] = position
    return [newest[key] for key in sorted(newest)]


@given(keyed_rows())
def test_newest_row_of_each_key_stays_in_key_order(case: Any) -> None:
    key_kinds, order_kinds, rows = case
    keys, orders = columns(key_kinds, [key for key, _ in rows]), columns(order_kinds, [order for _, order in rows])
    assert newest_order(keys, orders).tolist() == newest_positions(rows)


@given(st.lists(st.integers(0, 9) | st.integers(0, ALL), max_size=300), st.sampled_from([0, 2**63, ALL - 9]))
def test_fast_sort_equals_a_stable_sort(values: list[int], offset: int) -> None:
    words = np.array([(value + offset) % 2**64 for value in values], np.uint64)
    assert stable_order(words).tolist() == np.argsort(words, kind="stable").tolist()


@given(st.lists(st.integers(0, 99_999), max_size=60), st.sampled_from([np.int32, np.int64, np.uint32]))
def test_groups_hold_their_rows_in_order(codes: list[int], kind: type) -> None:
    order, found, bounds = group_order(np.array(codes, kind))
    assert order.tolist() == sorted(range(len(codes)), key=lambda row: codes[row])
    assert found.tolist() == sorted(set(codes))
    assert np.diff(bounds).tolist() == [codes.count(code) for code in found.tolist()]
    assert bounds[0] == 0


@st.composite
def sorted_runs(draw: st.DrawFn) -> tuple[list[pa.DataType], list[pa.DataType], list[list[tuple[Row, Row]]]]:
    """Runs, each sorted with one row a key."""
    key_kinds, keys = draw(typed_rows(KEY_TYPES, 1))
    order_kinds, orders = draw(typed_rows(ORDER_TYPES, 0))
    drawn = draw(st.lists(st.lists(st.tuples(keys, orders), max_size=25), max_size=5))
    return key_kinds, order_kinds, [[rows[at] for at in newest_positions(rows)] for rows in drawn]


def expected_rows(runs: Sequence[Sequence[tuple[Row, Row]]]) -> list[tuple[int, int]]:
    """The (run, row) of each key's newest row, in key order."""
    places = [(run, row) for run, rows in enumerate(runs) for row in range(len(rows))]
    return [places[at] for at in newest_positions([row for rows in runs for row in rows])]


@given(sorted_runs())
def test_masks_keep_the_newest_row_of_each_key(case: Any) -> None:
    key_kinds, order_kinds, runs = case
    runs_keys = [columns(key_kinds, [key for key, _ in rows]) for rows in runs]
    runs_orders = [columns(order_kinds, [order for _, order in rows]) for rows in runs]
    masks = keep_newest(runs_keys, runs_orders)
    kept = [
        (run, row)
        for run, (rows, mask) in enumerate(zip(runs, masks, strict=True))
        for row in range(len(rows))
        if mask is None or mask[row]
    ]
    assert kept == sorted(expected_rows(runs))
    assert all(mask is None or not mask.all() for mask in masks)


def table_of(key_kinds: Sequence[pa.DataType], order_kinds: Sequence[pa.DataType], run: int, rows: Any) -> pa.Table:
    keys = {f"k{at}": array for at, array in enumerate(columns(key_kinds, [key for key, _ in rows]))}
    orders = {f"o{at}": array for at, array in enumerate(columns(order_kinds, [order for _, order in rows]))}
    return pa.table(
        {
            **keys,
            **orders,
            "run": pa.array([run] * len(rows), pa.int64()),
            "row": pa.array(range(len(rows)), pa.int64()),
        }
    )


def row_groups(table: pa.Table, cuts: Sequence[int]) -> Iterator[pa.Table]:
    """The table in pieces, empty ones among them."""
    bounds = sorted(cut % (table.num_rows + 1) for cut in cuts)
    for start, end in zip([0, *bounds], [*bounds, table.num_rows], strict=True):
        yield table.slice(start, end - start)


@given(sorted_runs(), st.lists(st.lists(st.integers(0, 60), max_size=6), min_size=5, max_size=5))
def test_windows_hold_the_newest_rows_in_key_order_wherever_row_groups_end(case: Any, cuts: list[list[int]]) -> None:
    key_kinds, order_kinds, runs = case
    tables = [table_of(key_kinds, order_kinds, run, rows) for run, rows in enumerate(runs)]
    key_names, order_names = [f"k{at}" for at in range(len(key_kinds))], [f"o{at}" for at in range(len(order_kinds))]
    streams = [row_groups(table, cuts[run]) for run, table in enumerate(tables)]
    windows = list(merge_windows(streams, key_names, order_names))
    arranged = [arrange_window(window, key_names) for window in windows]
    kept = [(row["run"], row["row"]) for table in arranged for row in table.select(["run", "row"]).to_pylist()]
    assert kept == expected_rows(runs)
    assert all(piece.num_rows for window in windows for piece, _ in window)


def textbook_xxh64(data: bytes, seed: int) -> int:
    def turn(value: int, bits: int) -> int:
        value &= ALL
        return (value << bits | value >> (64 - bits)) & ALL

    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data) - 7, 8)]
    stripes = len(data) // 32
    if stripes:
        lanes = [seed + P1 + P2, seed + P2, seed, seed - P1]
        for at, word in enumerate(words[: stripes * 4]):
            lanes[at % 4] = turn(lanes[at % 4] + word * P2, 31) * P1
        value = sum(turn(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            value = (value ^ turn(lane * P2, 31) * P1) * P1 + P4
    else:
        value = seed + P5
    value = (value + len(data)) & ALL
    for word in words[stripes * 4 :]:
        value = turn(value ^ (turn(word * P2, 31) * P1 & ALL), 27) * P1 + P4 & ALL
    rest = data[len(words) * 8 :]
    if len(rest) >= 4:
        value = turn(value ^ (int.from_bytes(rest[:4], "little") * P1 & ALL), 23) * P2 + P3 & ALL
        rest = rest[4:]
    for byte in rest:
        value = turn(value ^ (byte * P5 & ALL), 11) * P1 & ALL
    for bits, factor in ((33, P2), (29, P3)):
        value = (value ^ value >> bits) * factor & ALL
    return value ^ value >> 32


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=100), st.none() | integers(64)), max_size=30), st.integers(0, 30)
)
def test_hash_chains_textbook_xxh64(rows: list[Row], cut: int) -> None:
    chunks = [columns([pa.binary(), pa.int64()], part) for part in (rows[:cut], rows[cut:])]
    hashes = key_hashes([pa.chunked_array([chunks[0][at], chunks[1][at]]) for at in range(2)])
    expected = []
    for text, number in rows:
        value = 42 if text is None else textbook_xxh64(text, 42)
        expected.append(value if number is None else textbook_xxh64(number.to_bytes(8, "little", signed=True), value))
    assert hashes.tolist() == expected
    assert hash_prefixes(hashes, 5).tolist() == [value >> 59 for value in expected]
