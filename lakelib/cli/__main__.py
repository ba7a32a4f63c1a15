"""The command `lake` as a process of its own: `python -m lakelib.cli`, and the program `lake`."""

import atexit
import gc
import os
import sys
from typing import NoReturn

_SELDOM = (200_000, 50, 100)


def run() -> NoReturn:
    gc.set_threshold(*_SELDOM)  # what modules define is no garbage, and to look for some takes long
    ended: list[int] = []
    atexit.register(_leave, ended)  # what is loaded after this and has something to do at exit does it before

    from lakelib.cli.main import main

    ended.append(main())
    sys.exit(ended[0])


def _leave(ended: list[int]) -> None:
    """Taking apart what was loaded takes a fifth of a short command's time, and changes nothing outside."""
    if ended:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()  # if it cannot be, the interpreter ends as it would have
        os._exit(ended[0])


if __name__ == "__main__":
    run()
