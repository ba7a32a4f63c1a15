"""Parts that are made ahead: in their order, a few at a time, and no longer than somebody wants them."""

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from lakelib.work.parallel import stream_ahead, stream_as_ready

from ...waiting import wait_until


def _twice(item: int) -> Iterator[int]:
    yield item
    yield 8 // item


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_parts_come_in_order_and_an_error_in_its_place(threads: int) -> None:
    with closing(stream_ahead([4, 2, 0, 1], _twice, threads)) as parts:
        found = [next(parts) for _ in range(5)]
        with pytest.raises(ZeroDivisionError):
            next(parts)
    assert found == [4, 2, 2, 4, 0]


def test_what_comes_next_is_made_meanwhile_but_not_all_of_it() -> None:
    made: list[int] = []

    def make(item: int) -> Iterator[int]:
        made.append(item)
        yield item

    with closing(stream_ahead(range(1000), make, 2)) as parts:
        next(parts)
        wait_until(lambda: len(made) > 2)
    assert len(made) < 10


def test_the_thread_ends_when_nobody_wants_more() -> None:
    before = set(threading.enumerate())
    with closing(stream_ahead(range(1000), lambda item: iter([item]), 2)) as parts:
        next(parts)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("stream", [stream_ahead, stream_as_ready])
@pytest.mark.parametrize("threads", [1, 2])
def test_none_and_errors_are_parts_like_others(stream: Any, threads: int) -> None:
    error = ValueError("a part")
    found = list(stream([None, 1, 2], lambda item: iter([item, None, error]), threads))
    assert sorted(map(repr, found)) == sorted(map(repr, [None, None, error, 1, None, error, 2, None, error]))


@pytest.mark.parametrize("stream", [stream_ahead, stream_as_ready])
def test_where_a_thread_cannot_be_started_those_before_it_end(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before, left = set(threading.enumerate()), [1 if stream is stream_as_ready else 0]
    start = threading.Thread.start

    def start_one(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        list(stream(range(1000), lambda item: iter([item]), 3))
    wait_until(lambda: set(threading.enumerate()) <= before)
