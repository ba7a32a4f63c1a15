"""Runs the splits of a scan on several threads."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Piece = TypeVar("Piece")

_PIECES_AHEAD = 4
_POLL_SECONDS = 0.2


def collect_in_order(items: Sequence[Item], produce: Callable[[Item], Iterator[Piece]], threads: int) -> list[Piece]:
    """All pieces of all items, in the order of the items."""
    if threads == 1 or len(items) <= 1:
        return [piece for item in items for piece in produce(item)]
    with ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix="lakelib-read") as pool:
        return [piece for pieces in pool.map(lambda item: list(produce(item)), items) for piece in pieces]


def stream_as_ready(items: Sequence[Item], produce: Callable[[Item], Iterator[Piece]], threads: int) -> Iterator[Piece]:
    """Pieces as they become ready, never more than a few ahead of the consumer. Ends its threads when it is closed."""
    if threads == 1 or len(items) <= 1:
        for item in items:
            yield from produce(item)
        return
    threads = min(threads, len(items))
    ready: queue.Queue[Piece | BaseException | None] = queue.Queue(maxsize=threads * _PIECES_AHEAD)
    stopped = threading.Event()
    waiting = iter(items)
    take = threading.Lock()

    def work() -> None:
        try:
            while not stopped.is_set():
                with take:
                    item = next(waiting, None)
                if item is None:
                    break
                for piece in produce(item):
                    if not _offer(ready, piece, stopped):
                        return
            _offer(ready, None, stopped)
        except BaseException as error:
            _offer(ready, error, stopped)

    workers = [threading.Thread(target=work, name="lakelib-read", daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield from _until_all_ended(ready, threads)
    finally:
        stopped.set()
        for worker in workers:
            worker.join()


def _until_all_ended(ready: "queue.Queue[Piece | BaseException | None]", threads: int) -> Iterator[Piece]:
    while threads:
        piece = ready.get()
        if piece is None:
            threads -= 1
        elif isinstance(piece, BaseException):
            raise piece
        else:
            yield piece


def _offer(ready: "queue.Queue[Piece | BaseException | None]", piece: object, stopped: threading.Event) -> bool:
    """Puts the piece into the queue once there is room; False if the consumer is gone."""
    while not stopped.is_set():
        try:
            ready.put(piece, timeout=_POLL_SECONDS)  # type: ignore[arg-type]
            return True
        except queue.Full:
            continue
    return False
