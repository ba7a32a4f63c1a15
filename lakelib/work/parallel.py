"""Work. Runs the splits of a scan on several threads, and reads what comes next while what came before is used."""

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

Item = TypeVar("Item")
Part = TypeVar("Part")

_PARTS_AHEAD = 4
_POLL_SECONDS = 0.2
Found = TypeVar("Found")


class _End:
    """A thread has no more parts, for there are none, or for its work failed."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def collect_in_order(items: Sequence[Item], produce: Callable[[Item], Iterator[Part]], threads: int) -> list[Part]:
    """All parts of all items, in the order of the items."""
    if threads == 1 or len(items) <= 1:
        return [part for item in items for part in produce(item)]
    with ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix="lakelib-read") as pool:
        return [part for parts in pool.map(lambda item: list(produce(item)), items) for part in parts]


def stream_as_ready(items: Sequence[Item], produce: Callable[[Item], Iterator[Part]], threads: int) -> Iterator[Part]:
    """Parts as they become ready, never more than a few ahead of the consumer. Ends its threads when it is closed."""
    return _stream(items, produce, min(threads, len(items)) if threads > 1 and len(items) > 1 else 0)


def stream_ahead(
    items: Sequence[Item], produce: Callable[[Item], Iterator[Part]], threads: int
) -> Generator[Part, None, None]:
    """All parts in the order of the items: with several threads one of them makes the next few while the consumer uses
    those before. Ends it when it is closed."""
    return _stream(items, produce, 1 if threads > 1 else 0)


def _stream(
    items: Sequence[Item], produce: Callable[[Item], Iterator[Part]], threads: int
) -> Generator[Part, None, None]:
    """Made by so many threads beside the consumer's; by itself, if none."""
    if not threads:
        for item in items:
            yield from produce(item)
        return
    ready: queue.Queue[Part | _End] = queue.Queue(maxsize=threads * _PARTS_AHEAD)
    stopped = threading.Event()
    places = iter(range(len(items)))
    take = threading.Lock()

    def work() -> None:
        try:
            while not stopped.is_set():
                with take:
                    place = next(places, None)
                if place is None:
                    break
                for part in produce(items[place]):
                    if not _offer(ready, part, stopped):
                        return
            _offer(ready, _End(), stopped)
        except BaseException as error:
            _offer(ready, _End(error), stopped)

    workers: list[threading.Thread] = []
    try:
        for _ in range(threads):
            worker = threading.Thread(target=work, name="lakelib-read", daemon=True)
            worker.start()
            workers.append(worker)
        yield from _until_all_ended(ready, threads)
    finally:
        stopped.set()
        for worker in workers:
            worker.join()


def _until_all_ended(ready: "queue.Queue[Part | _End]", threads: int) -> Iterator[Part]:
    while threads:
        part = ready.get()
        if not isinstance(part, _End):
            yield part
        elif part.error is not None:
            raise part.error
        else:
            threads -= 1


def _offer(ready: "queue.Queue[Part | _End]", part: Part | _End, stopped: threading.Event) -> bool:
    """Puts the part into the queue once there is room; False if the consumer is gone."""
    while not stopped.is_set():
        try:
            ready.put(part, timeout=_POLL_SECONDS)
            return True
        except queue.Full:
            continue
    return False


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
