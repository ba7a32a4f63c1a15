"""A bar for whoever waits at a terminal or in a notebook: what takes long says how far it is. Logs see nothing of it.

A bar shows itself after two seconds and leaves nothing behind. One is shown at a time: work inside of other work, or
beside it, is silent. LAKE_PROGRESS=0 switches all of them off.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

Item = TypeVar("Item")

_DELAY_SECONDS = 2.0
_REDRAW_SECONDS = 0.2
_shown = threading.Lock()
"""Held by the bar that is shown."""


class Bar(Protocol):
    def expect(self, more: int) -> None:
        """There is more to be done than was known."""

    def advance(self, more: int) -> None:
        """So much more is done."""


class _Screen(Protocol):
    def draw(self, done: int, total: int | None) -> None: ...

    def clear(self) -> None: ...


@contextmanager
def bar(what: str, total: int | None = None) -> Iterator[Bar]:
    """Shows how much of `total` is done while the block runs; without a total, how much."""
    screen_type = _watched()
    if screen_type is None or not _shown.acquire(blocking=False):
        yield SILENT
        return
    shown = _Shown(lambda: screen_type(what), total)
    try:
        yield shown
    finally:
        shown.end()
        _shown.release()


@contextmanager
def shown_elsewhere() -> Iterator[None]:
    """While the block runs its caller tells people how far it is, and no bar is shown."""
    free = _shown.acquire(blocking=False)
    try:
        yield
    finally:
        if free:
            _shown.release()


@contextmanager
def counted(
    what: str, items: Iterable[Item], total: int | None, size_of: Callable[[Item], int]
) -> Iterator[Iterator[Item]]:
    """The items, with a bar; each counts as done once the next one is asked for."""
    with bar(what, total) as shown:
        yield iter(items) if shown is SILENT else _counted(items, shown, size_of)


def _counted(items: Iterable[Item], shown: Bar, size_of: Callable[[Item], int]) -> Iterator[Item]:
    for item in items:
        yield item
        shown.advance(size_of(item))


def _watched() -> "Callable[[str], _Screen] | None":
    """Where somebody would see a bar, if anybody would."""
    if os.environ.get("LAKE_PROGRESS") == "0":
        return None
    if _in_notebook():
        return _Cell
    return Terminal if sys.stderr is not None and sys.stderr.isatty() else None


def _in_notebook() -> bool:
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    return getattr(shell, "kernel", None) is not None


class _Silent:
    def expect(self, more: int) -> None:
        """Nobody is watching."""

    def advance(self, more: int) -> None:
        """Nobody is watching."""


SILENT = _Silent()


class _Shown:
    """Safe for several threads."""

    def __init__(self, open_screen: Callable[[], _Screen], total: int | None) -> None:
        self._open_screen = open_screen
        self._total = total
        self._done = 0
        self._screen: _Screen | None = None
        self._ended = False
        self._drawn_at = 0.0
        self._lock = threading.Lock()
        self._timer = threading.Timer(_DELAY_SECONDS, self._open)
        self._timer.daemon = True
        self._timer.start()

    def expect(self, more: int) -> None:
        with self._lock:
            self._total = more + (self._total or 0)

    def advance(self, more: int) -> None:
        with self._lock:
            self._done += more
            if time.monotonic() - self._drawn_at >= _REDRAW_SECONDS:
                self._draw()

    def end(self) -> None:
        with self._lock:
            self._ended = True
            self._timer.cancel()
            if self._screen is not None:
                with suppress(Exception):
                    self._screen.clear()

    def _open(self) -> None:
        with self._lock:
            if self._ended:
                return
            with suppress(Exception):
                self._screen = self._open_screen()
            self._draw()

    def _draw(self) -> None:
        """A screen that fails, as that of a terminal that was closed, shows nothing any more: the work goes on."""
        if self._screen is None:
            return
        try:
            self._screen.draw(self._done, self._total)
            self._drawn_at = time.monotonic()
        except Exception:
            self._screen = None


class Terminal:
    """A line on stderr, or on the console that is given."""

    def __init__(self, what: str, console: "Console | None" = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[far]}", markup=False),
            TimeElapsedColumn(),
        )
        is_own_program = console is not None  # what others print is theirs
        console = console or Console(stderr=True)
        self._progress = Progress(*columns, console=console, transient=True, redirect_stdout=is_own_program)
        self._task = self._progress.add_task(what, total=None, far="")
        self._progress.start()

    def draw(self, done: int, total: int | None) -> None:
        self._progress.update(self._task, completed=done, total=total, far=_far(done, total))

    def clear(self) -> None:
        self._progress.stop()


class _Cell:
    """Below the notebook's cell, by IPython itself: widgets need what not every notebook has."""

    def __init__(self, what: str) -> None:
        from IPython import display

        show: Any = display.display  # without types
        self._what = what
        self._began = time.monotonic()
        self._handle: Any = show({"text/plain": what}, raw=True, display_id=True)

    def draw(self, done: int, total: int | None) -> None:
        from html import escape

        text = f"{self._what}: {_far(done, total)}, {time.monotonic() - self._began + _DELAY_SECONDS:.0f} s"
        shown = f' <progress value="{done}" max="{total}"></progress>' if total else ""
        self._handle.update({"text/plain": text, "text/html": f"<div>{escape(text)}{shown}</div>"}, raw=True)

    def clear(self) -> None:
        self._handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _far(done: int, total: int | None) -> str:
    return f"{done:,}" if total is None else f"{100 * done // max(total, 1)} %"
