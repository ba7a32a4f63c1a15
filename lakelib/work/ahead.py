"""Work. Reads what comes next while what came before is used."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


@contextmanager
def read_ahead(
    items: Sequence[Item], read: Callable[[Item], Found], threads: int
) -> Iterator[list[Callable[[], Found]]]:
    """For each item a call, to be made once and in order, that gives what `read` makes of it.

    The first call begins the work. As many items as there are threads are read ahead of the one that was asked for,
    and no more: memory does not grow with the items. With one thread each is read when it is asked for.
    """
    if threads == 1 or len(items) < 2:
        yield [partial(read, item) for item in items]
        return
    begun: list[Future[Found] | None] = []
    with ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix="lakelib-ahead") as pool:

        def take(number: int) -> Found:
            begun.extend([pool.submit(read, item) for item in items[len(begun) : number + 1 + threads]])
            future, begun[number] = begun[number], None
            assert future is not None
            return future.result()

        try:
            yield [partial(take, number) for number in range(len(items))]
        finally:
            pool.shutdown(cancel_futures=True)
