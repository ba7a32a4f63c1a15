"""Waiting for what is about to happen elsewhere."""

import time
from collections.abc import Callable

_PAUSE_SECONDS = 0.005


def wait_until(is_so: Callable[[], bool], seconds: float = 30) -> None:
    """Returns once it is so; that it is not so in time is a failure."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(_PAUSE_SECONDS)
