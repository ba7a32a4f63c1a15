"""Use case: from which position a run of a spec reads the changes of a table, and how far.

The position is a consumer of the table that is read, named by the table that is made and the view. It moves in the
transaction that publishes what was made; so the commit keeps which range was read, and whoever publishes it moves the
consumer from just there.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256

from lakelib.catalog import consumers, tables
from lakelib.dataclass import dataclass
from lakelib.errors import ConflictError, InvalidInputError, NotFoundError
from lakelib.model.positions import ReadRange
from lakelib.model.table import TableInfo
from lakelib.ops.consumers import advance, open_consumer
from lakelib.ops.labels import LONGEST_NAME
from lakelib.ops.runtime import Runtime

_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far the runs of a table have read another one, at one moment."""

    view: str
    consumer: str
    input: TableInfo
    position: int | None
    """None if there is no such consumer."""
    last: ReadRange | None
    """What the newest commit that is published was made of; None before the first."""
    is_rolled_back: bool
    """Whether the table that is made has gone back since."""

    def reads_on(self, found: ReadRange) -> bool:
        """Whether what was made of a range may still be published: nobody has moved the position since."""
        return (found.table_id, found.consumer, found.from_id) == (self.input.id, self.consumer, self.position)

    def plan_range(self, at_id: int, *, whole: bool) -> ReadRange:
        """What is read next, up to a snapshot; never less than what was read before, unless as a whole."""
        assert self.position is not None, "it was looked at for a run that reads on, or begins"
        to_id = at_id if whole else max(at_id, self.position)
        return ReadRange(
            view=self.view,
            table=self.input.full_name,
            table_id=self.input.id,
            consumer=self.consumer,
            from_id=self.position,
            to_id=to_id,
            is_whole=whole,
        )

    def check(self) -> None:
        """Raises InvalidInputError where the position is not that of what is in the table."""
        last, table = self.last, self.input.full_name
        if last is None:
            return
        if last.table_id != self.input.id:
            why = f"{table} was dropped and made anew since"
        elif self.position is None:
            why = f"the consumer {self.consumer!r} of {table} was removed"
        elif self.position < last.to_id:
            why = f"the consumer {self.consumer!r} of {table} was set back to snapshot {self.position}"
        elif self.is_rolled_back:
            why = "the table that is made of them was rolled back since"
        else:
            return
        raise InvalidInputError(
            f"What is there was made of the changes of {last.table} until snapshot {last.to_id}, and {why}: it cannot"
            " be told what has changed.",
            kind="position_lost",
            remedy="Make the table from scratch: --full, or the param full of its DAG.",
        )


def consumer_name(table: str, view: str) -> str:
    """The name of the position of a table's runs in what they read by that view."""
    name = f"{table}/{view}"
    if len(name) <= LONGEST_NAME:
        return name
    digest = sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: LONGEST_NAME - _DIGITS - 1]}#{digest}"


def look_at_position(
    runtime: Runtime, own: TableInfo, view: str, table: str, *, full: bool, keep_for: timedelta | None = None
) -> Standing | None:
    """How far the runs have come; None where the table that they read is not there. The consumer is made for the first
    run, and for one that begins from scratch, and keeps history for as long as is told."""
    input = tables.find_table(runtime.catalog, *table.split(".", 1))
    if input is None:
        return None
    name = consumer_name(own.full_name, view)
    position, last, is_rolled_back = consumers.find_standing(runtime.catalog, input.id, name, own.id, view)
    if position is None and (last is None or full):
        open_consumer(runtime, input, name, keep_for, None)
        position, last, is_rolled_back = consumers.find_standing(runtime.catalog, input.id, name, own.id, view)
    elif position is not None and keep_for is not None:
        open_consumer(runtime, input, name, keep_for, position)
    return Standing(view=view, consumer=name, input=input, position=position, last=last, is_rolled_back=is_rolled_back)


def move_over(runtime: Runtime, ranges: Iterable[ReadRange]) -> None:
    """What was read has made nothing: there is nothing to publish the move with. Somebody else who was faster has moved
    it for a better reason."""
    for each in ranges:
        if each.to_id > each.from_id:
            with suppress(ConflictError, NotFoundError):
                advance(runtime, each.advance())
