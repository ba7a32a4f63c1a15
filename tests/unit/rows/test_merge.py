"""Merging sorted runs; tests/property/test_kernels.py covers every type and any row groups."""

import time
from collections.abc import Iterator

import pyarrow as pa

from lakelib.rows.merge import Window, arrange_window, keep_newest, merge_tables, merge_windows


def masks(runs: list[list], *orders: list[list]) -> list[list[bool] | None]:
    runs_orders = [[pa.array(column) for column in columns] for columns in zip(*orders, strict=True)] if orders else []
    kept = keep_newest([[pa.array(run)] for run in runs], runs_orders)
    return [None if mask is None else mask.tolist() for mask in kept]


def run_of(keys: list, value: str) -> pa.Table:
    return pa.table({"key": keys, "value": [value] * len(keys)})


def groups(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    return (table.slice(at, rows) for at in range(0, table.num_rows, rows))


def merged(*runs: Iterator[pa.Table]) -> list[Window]:
    return list(merge_windows(runs, ["key"], []))


def rows_of(windows: list[Window]) -> list[tuple]:
    tables = [arrange_window(window, ["key"]) for window in windows]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def test_later_run_wins_for_the_same_key() -> None:
    assert masks([[1, 2, 3], [2, 4], [3, 4]]) == [[True, False, False], [True, False], None]


def test_small_runs_become_one_with_the_newest_row_of_each_key() -> None:
    tables = [run_of([3, 1], "first"), run_of([2, 3], "second"), run_of([1], "third")]
    whole = merge_tables(tables, ["key"], [])
    assert [tuple(row.values()) for row in whole.to_pylist()] == [(1, "third"), (2, "second"), (3, "second")]


def test_small_runs_become_one_with_the_highest_row_of_each_key() -> None:
    tables = [run_of([1, 2], "b"), run_of([1, 2], "a"), run_of([2], "b")]
    whole = merge_tables(
        [table.append_column("at", pa.array(range(table.num_rows))) for table in tables], ["key"], ["value"]
    )
    assert whole.to_pylist() == [{"key": 1, "value": "b", "at": 0}, {"key": 2, "value": "b", "at": 0}]


def test_runs_without_common_keys_keep_all_rows() -> None:
    assert masks([["a", "c"], ["b", "d"]]) == [None, None]


def test_highest_order_value_wins_over_a_later_run() -> None:
    assert masks([[1, 2], [1, 2]], [[9, 1], [5, 1]]) == [[True, False], [False, True]]


def test_text_with_a_common_first_word_is_compared_to_its_end() -> None:
    old, new = ["prefix-prefix-a", "prefix-prefix-b"], ["prefix-prefix-b", "prefix-prefix-c"]
    assert masks([old, new]) == [[True, False], None]


def test_a_nul_at_the_end_makes_another_key() -> None:
    assert masks([["a", "b"], ["a\x00", "b"]]) == [[True, False], None]


def test_one_run_or_none_needs_no_mask() -> None:
    assert masks([[1, 2]]) == [None]
    assert keep_newest([], []) == []


def test_window_ends_where_the_first_unfinished_run_does() -> None:
    windows = merged(groups(run_of([1, 3, 5, 7], "old"), 2), iter([run_of([2, 4, 6, 8], "new")]))
    keys = [[piece.column("key").to_pylist() for piece, _ in window] for window in windows]
    assert keys == [[[1, 3], [2]], [[5, 7], [4, 6, 8]]]


def test_a_window_has_no_more_rows_than_asked_for() -> None:
    runs = [run_of(list(range(start, 1000, 2)), "even" if start % 2 == 0 else "odd") for start in (0, 1, 0)]
    windows = list(merge_windows([groups(run, 300) for run in runs], ["key"], [], most_rows=30))
    assert all(sum(piece.num_rows for piece, _ in window) <= 30 for window in windows)
    assert [key for key, _ in rows_of(windows)] == list(range(1000))


def test_windows_share_memory_with_the_tables_they_come_from() -> None:
    table = run_of([1, 2, 3, 4], "old")
    ((piece, _),) = merged(iter([table]))[0]
    assert piece.column("key").chunk(0).buffers()[1].address == table.column("key").chunk(0).buffers()[1].address


def test_empty_tables_and_empty_runs_add_nothing() -> None:
    nothing = run_of([], "none").cast(pa.schema({"key": pa.int64(), "value": pa.string()}))
    assert merged() == []
    assert merged(iter([nothing]), iter([])) == []
    windows = merged(iter([nothing, run_of([1], "a"), nothing, run_of([2], "a"), nothing]), iter([nothing]))
    assert rows_of(windows) == [(1, "a"), (2, "a")]


def test_keys_that_share_their_first_bytes_are_told_apart() -> None:
    runs = [["same-first-a", "same-first-b"], ["same-first-a", "same-first-c"], ["same-first-b"], ["settled"]]
    assert masks(runs) == [[False, False], None, None, None]
    assert masks([*runs, ["same-first-c", "settled"]]) == [[False, False], [True, False], None, [False], None]


def test_merge_holds_about_one_table_of_each_run() -> None:
    pulled = [0, 0, 0]

    def counted(run: int) -> Iterator[pa.Table]:
        for start in range(0, 10_000, 100):
            pulled[run] += 1
            yield run_of(list(range(start, start + 100)), str(run))

    for count, _ in enumerate(merge_windows([counted(run) for run in range(3)], ["key"], []), start=1):
        assert sum(pulled) <= 3 * count + 1
    assert pulled == [100, 100, 100]


def test_tables_in_several_chunks_merge() -> None:
    chunked = pa.concat_tables([run_of([1, 2], "old"), run_of([3], "old")])
    assert rows_of(merged(iter([chunked]), iter([run_of([2], "new")]))) == [(1, "old"), (2, "new"), (3, "old")]


def test_a_thousand_tiny_runs_merge_in_one_window_without_quadratic_cost() -> None:
    runs = [run_of([number % 7 * 1_000 + key for key in range(20)], str(number)) for number in range(1_000)]
    started = time.process_time()
    windows = merged(*(iter([run]) for run in runs))
    seconds = time.process_time() - started
    assert len(windows) == 1
    newest = {key: str(number) for number in range(1_000) for key in range(number % 7 * 1_000, number % 7 * 1_000 + 20)}
    assert rows_of(windows) == sorted(newest.items())
    assert seconds < 2
