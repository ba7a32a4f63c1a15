"""Use case: a table's commits are followed as they come.

Step by step: look in the catalog for what has come; wait until somebody tells that there is more, or for a moment; look
again. What is told is a hint alone, so none is lost for who was not told.
"""

import time
from collections.abc import Iterator
from datetime import timedelta

from lakelib.catalog import events, tables
from lakelib.errors import InvalidInputError
from lakelib.model.table import Snapshot, TableInfo, TableRef
from lakelib.ops.consumers import After, resolve_after
from lakelib.ops.runtime import Runtime
from lakelib.specs.texts import LONGEST_LENGTH

_POLL_SECONDS = 1.0
"""How late one is who was not told: by a client of the version before, or one that was killed."""


def watch(runtime: Runtime, table: TableInfo, after: After, timeout: timedelta | float | None) -> Iterator[Snapshot]:
    """The commits after a snapshot as they come, each once, in their order; after the present head, unless told. Ends
    when the time is over; without one, when its caller does not ask for more. Raises NotFoundError once the table was
    dropped, InvalidInputError for what is no snapshot or no length of time."""
    seconds = _parse_seconds(timeout)
    begin = table.head_id if after is None else _parse_begin(runtime, table, after)
    return _follow(runtime, table.ref, begin, None if seconds is None else time.monotonic() + seconds)


def _follow(runtime: Runtime, ref: TableRef, last: int, deadline: float | None) -> Iterator[Snapshot]:
    with events.Listener(runtime.catalog, ref.id) as listener:
        while True:
            left = _POLL_SECONDS if deadline is None else min(_POLL_SECONDS, deadline - time.monotonic())
            found = events.list_after(runtime.catalog, ref.id, last)
            for snapshot in found:
                last = snapshot.id
                yield snapshot
            if found:
                continue
            if left <= 0:
                return
            listener.wait(left)
            tables.load_table(runtime.catalog, ref)


def _parse_begin(runtime: Runtime, table: TableInfo, after: After) -> int:
    """Who goes on after a snapshot that he has seen does so whether or not it has expired since."""
    if isinstance(after, int) and not isinstance(after, bool) and 0 <= after <= table.head_id:
        return after
    return resolve_after(runtime, table, after)


def _parse_seconds(timeout: timedelta | float | None) -> float | None:
    if timeout is None:
        return None
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds <= LONGEST_LENGTH.total_seconds():
        raise InvalidInputError(
            f"timeout is {timeout!r}.", kind="invalid_timeout", remedy="Give a timedelta, or seconds, from 0 on."
        )
    return float(seconds)
