"""The command `lake` as a process of its own: `python -m lakelib.cli`, and the program `lake`."""

import atexit
import gc
import io
import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

_SELDOM = (200_000, 50, 100)


class _Notes(io.FileIO):
    """Stderr. A word that cannot be written there changes neither the work nor the exit code."""

    def write(self, words: Any, /) -> int:
        with suppress(OSError):
            return super().write(words)
        return len(words)


def run() -> NoReturn:
    ended = prepare()

    from lakelib.cli.main import main

    ended.append(main())
    sys.exit(ended[0])


def prepare() -> list[int]:
    """What comes before anything else is loaded. The process ends at once, in the end, if the exit code is in the list
    by then."""
    _prepare_streams()
    gc.set_threshold(*_SELDOM)  # what modules define is no garbage, and to look for some takes long
    ended: list[int] = []
    atexit.register(_leave, ended)  # what is loaded after this and has something to do at exit does it before
    return ended


def _prepare_streams() -> None:
    """One that is closed leads nowhere: else its number would be that of a file or connection that is opened next."""
    if sys.stderr is not None:
        notes = io.BufferedWriter(_Notes(sys.stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(notes, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _leave(ended: list[int]) -> None:
    """Taking apart what was loaded takes a fifth of a short command's time, and changes nothing outside."""
    if ended:
        sys.stdout.flush()  # if it cannot be, the interpreter ends as it would have
        sys.stderr.flush()
        os._exit(ended[0])


if __name__ == "__main__":
    run()
