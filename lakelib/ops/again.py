"""Part of use cases: what others were faster than is done again. The one loop that does so.

Each operation says how: an attempt that was overtaken has put its work in order, and waited if that is of use.
"""

from collections.abc import Callable
from typing import TypeVar

from lakelib.dataclass import dataclass
from lakelib.errors import LakeError

Result = TypeVar("Result")

MOST_CHANGES = 10
"""So often what is looked at, decided and changed in a moment is tried; then others are changing it all the time."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Others were first, and another attempt may succeed."""

    error: LakeError | None = None
    """What to raise if this was the last one; None where the attempts' own waiting has an end."""


def do_again(attempt: Callable[[], Result | Overtaken], most_tries: int | None = None) -> Result:
    """What comes of the first attempt that nobody overtakes."""
    tries = 1
    while isinstance(outcome := attempt(), Overtaken):
        if tries == most_tries and outcome.error is not None:
            raise outcome.error
        tries += 1
    return outcome
