"""Part of all publishing: work waits for tables that are busy, in the order of coming.

Who can publish as soon as nobody is alone with a table asks again and again by publishing. Who has to look at the table
once more before takes a turn: nobody else publishes until he has. Both have one place in one line, which the database
keeps; who stops asking has soon left it.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Self, TypeVar
from uuid import uuid4

from lakelib.catalog import commits
from lakelib.errors import LakeError
from lakelib.model.commit import Busy, Done, IdentityDiffers
from lakelib.ops.patience import Patience
from lakelib.ops.runtime import Runtime

Outcome = TypeVar("Outcome")


class Turn:
    """Of one piece of work, to publish. At its end as a context nobody waits for it any more."""

    def __init__(self, runtime: Runtime, patience: Patience, table_id: int | None = None) -> None:
        """`table_id` is where it publishes, if that is one table."""
        self.id = uuid4()
        self.patience = patience
        self._runtime = runtime
        self._table_id = table_id
        self._is_in_line = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_in_line:
            with suppress(LakeError):  # it is over soon
                commits.release_turn(self._runtime.catalog, self.id)

    def attempt(self, act: Callable[[int], Outcome]) -> Outcome:
        """What comes of it at the lake's epoch, once the tables are not busy. Raises GaveUpError if that lasts."""
        while isinstance(outcome := self._attempt_once(act), Busy):
            self._is_in_line = self._is_in_line or outcome.ahead > 0
            self.patience.pause()
            if outcome.needs_turn and self._table_id is not None:
                self.take(self._table_id)
        if isinstance(outcome, Done):
            self._is_in_line = False
        return outcome

    def take(self, table_id: int) -> None:
        """Returns once nobody else publishes to the table. Raises GaveUpError if that lasts."""
        self._is_in_line = True
        with self.patience.waiting():
            while ahead := commits.take_turn(self._runtime.catalog, table_id, self.id):
                self.patience.poll(ahead)

    def _attempt_once(self, act: Callable[[int], Outcome]) -> Outcome:
        with self._runtime.publishers.enter(self._table_id, self.patience):
            ownership = self._runtime.ownership
            outcome = act(ownership.confirm())
            if isinstance(outcome, IdentityDiffers):  # there is a newer epoch
                return act(ownership.confirm_now())
            return outcome


def while_busy(patience: Patience, attempt: Callable[[], Outcome]) -> Outcome:
    """The first outcome that is not that a table is busy. Raises GaveUpError if that lasts."""
    with patience.waiting():
        while isinstance(outcome := attempt(), Busy):
            patience.poll()
    return outcome
