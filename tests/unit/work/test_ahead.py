"""Reading ahead: in order, a few at a time, and ended with whoever asked."""

import threading
from collections.abc import Callable

import pytest

from lakelib.work.parallel import read_ahead

SECONDS = 20


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_call_gives_what_was_read_of_its_item(threads: int) -> None:
    with read_ahead(range(20), lambda item: item * item, threads) as reads:
        assert [read() for read in reads] == [item * item for item in range(20)]


def test_with_several_threads_items_are_read_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=SECONDS)

    def meet(item: int) -> int:
        both.wait()
        return item

    with read_ahead(range(4), meet, 2) as reads:
        assert [read() for read in reads] == [0, 1, 2, 3]


def test_no_more_is_read_than_a_few_ahead() -> None:
    begun = list[int]()
    with read_ahead(range(100), begun.append, 2) as reads:
        assert not begun
        reads[0]()
        reads[1]()
    assert set(begun) <= {0, 1, 2, 3}


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_is_raised_where_its_item_is_asked_for(threads: int) -> None:
    with read_ahead([4, 2, 0, 1], lambda item: 8 // item, threads) as reads:
        assert [reads[0](), reads[1]()] == [2, 4]
        with pytest.raises(ZeroDivisionError):
            reads[2]()


def test_whoever_leaves_waits_for_what_is_being_read_and_nothing_else_begins() -> None:
    begun, ended = list[int](), list[int]()
    goes_on = threading.Event()

    def read(item: int) -> None:
        begun.append(item)
        assert item == 0 or goes_on.wait(SECONDS)
        ended.append(item)

    def leave(reads: list[Callable[[], None]]) -> None:
        reads[0]()
        threading.Timer(0.05, goes_on.set).start()
        raise InterruptedError

    with pytest.raises(InterruptedError), read_ahead(range(50), read, 2) as reads:
        leave(reads)
    assert sorted(begun) == sorted(ended)
    assert len(begun) <= 3
