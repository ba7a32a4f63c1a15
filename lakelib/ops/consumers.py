"""Use cases: a table's consumers are made, read from, moved on and removed; and from which position a run of a spec
reads the changes of a table, and how far.

Step by step: a consumer is found, or made; what it has not read yet begins after its position; it moves on from the
position that was read, alone or with what was made of the changes, in one transaction.

The position of a run is a consumer of the table that is read, named by the table that is made and the view. It moves in
the transaction that publishes what was made; so the commit keeps which range was read, and whoever publishes it moves
the consumer from just there.
"""

import operator
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256

from lakelib.catalog import consumers, snapshots, tables
from lakelib.catalog.roles import require_right
from lakelib.dataclass import dataclass
from lakelib.errors import ConflictError, InvalidInputError, NotFoundError
from lakelib.model.commit import NotAdvanced, Standstill
from lakelib.model.html import Listing
from lakelib.model.positions import Advance, ConsumerInfo, ConsumerStatus, ReadRange
from lakelib.model.roles import Right
from lakelib.model.table import TableInfo, TableRef
from lakelib.ops.expire import check_length
from lakelib.ops.publish import publish
from lakelib.ops.read import resolve_snapshot
from lakelib.ops.refusals import error_of
from lakelib.ops.request import LONGEST_NAME, check_label
from lakelib.ops.runtime import Runtime
from lakelib.plan.meant import CONSUMER_PREFIX

DEFAULT_KEEP_FOR = timedelta(days=7)
_BEYOND = 2**63
"""No snapshot's id is as high."""
_DIGITS = 12


After = None | int | str | datetime


def open_consumer(
    runtime: Runtime, table: TableInfo, name: str, keep_for: timedelta | None, after: After
) -> ConsumerInfo:
    """The consumer of that name, made if it is not there: it then begins `after` a snapshot, by default before the
    first. One that is there stays where it is, and keeps for as long as is told now. Raises InvalidInputError for a
    wrong name or length, NotFoundError for a beginning that is not there."""
    check_label(name, "consumer", CONSUMER_PREFIX)
    check_length("keep_for", keep_for)
    known = consumers.find_consumer(runtime.catalog, table.id, name)
    if known is not None and keep_for in (None, known.keep_for):
        return known
    require_right(runtime.catalog, Right.WRITE)
    start = resolve_after(runtime, table, after) if known is None else 0
    made = consumers.make_consumer(runtime.catalog, table.id, name, start=start, told=keep_for, usual=DEFAULT_KEEP_FOR)
    if made is not None:
        return made
    tables.load_table(runtime.catalog, table.ref)
    raise snapshots.missing_snapshot(runtime.catalog, table, start)


def find_consumer(runtime: Runtime, ref: TableRef, name: str) -> ConsumerInfo:
    """As it stands now. Raises NotFoundError."""
    found = consumers.find_consumer(runtime.catalog, ref.id, name)
    if found is None:
        raise consumers.consumer_missing(name, ref.full_name)
    return found


def look_at_consumer(runtime: Runtime, ref: TableRef, name: str) -> ConsumerStatus:
    """As it stands now, and how far behind it is. Raises NotFoundError."""
    found = consumers.list_consumers(runtime.catalog, ref.id, name)
    if not found:
        raise consumers.consumer_missing(name, ref.full_name)
    return found[0]


def list_consumers(runtime: Runtime, table: TableInfo | None = None) -> Listing[ConsumerStatus]:
    """Those of a table, or of all, by table and name."""
    return Listing(consumers.list_consumers(runtime.catalog, None if table is None else table.id))


def choose_end(table: TableInfo, position: int, limit: int | None) -> int:
    """Up to which snapshot is read: so many after the position, or up to the head. Raises InvalidInputError."""
    if limit is None:
        return max(table.head_id, position)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InvalidInputError(
            f"limit is {limit!r}.", kind="invalid_limit", remedy="Give a number of commits, from 1 on."
        )
    return max(min(table.head_id, position + limit), position)


def plan_advance(info: ConsumerInfo, from_id: int, to: object, *, backwards: bool) -> Advance:
    """How the consumer moves to a snapshot, from the one that was read. Raises InvalidInputError for what is none."""
    try:
        to_id = -1 if isinstance(to, bool) else operator.index(to)  # type: ignore[arg-type]
    except TypeError:
        to_id = -1
    if not 0 <= to_id < _BEYOND:
        raise InvalidInputError(
            f"Consumer {info.name!r} cannot move to {to!r}.",
            kind="invalid_position",
            remedy="Give the id of a snapshot, or the changes that were read; 0 is before the first.",
        )
    return Advance(table_id=info.table_id, name=info.name, from_id=from_id, to_id=to_id, backwards=backwards)


def advance(runtime: Runtime, wanted: Advance) -> None:
    """The consumer moves on. Raises ConflictError if somebody else has moved it since it was read, NotFoundError if it
    is gone, InvalidInputError for a snapshot beyond the head, or before its position."""
    publish(runtime, [], advances=[wanted])


def check_direction(status: ConsumerStatus, to_id: int, *, backwards: bool) -> None:
    """Raises InvalidInputError where moving there would be to go back."""
    if to_id >= status.position or backwards:
        return
    raise error_of(
        NotAdvanced(
            why=Standstill.BACKWARDS,
            consumer=status.name,
            table_name=status.table,
            position=status.position,
            from_id=status.position,
            to_id=to_id,
            head_id=status.head,
        )
    )


def remove_consumer(runtime: Runtime, ref: TableRef, name: str) -> None:
    """It holds nothing any more. Raises NotFoundError if there is no such consumer."""
    if not consumers.remove_consumer(runtime.catalog, ref.id, name):
        raise consumers.consumer_missing(name, ref.full_name)


def resolve_after(runtime: Runtime, table: TableInfo, after: After) -> int:
    """The snapshot after which somebody begins: None and 0 are before the first; "consumer:…" is another's position,
    and all else is as for a read. Raises NotFoundError for one that is not there."""
    if after is None or (isinstance(after, int) and not isinstance(after, bool) and after == 0) or after == "0":
        return 0
    if isinstance(after, str) and after.startswith(CONSUMER_PREFIX):
        return find_consumer(runtime, table.ref, after.removeprefix(CONSUMER_PREFIX)).position
    found = resolve_snapshot(runtime, table, after)
    assert found is not None
    return found.id


# How far behind a consumer is


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
