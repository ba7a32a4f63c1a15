"""The public API: Consumer. A named position in a table's history, from which somebody goes on reading."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lakelib.changes import Changes
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.flags import checked_flag
from lakelib.model.html import html_table
from lakelib.model.positions import Advance, ConsumerInfo, Lag
from lakelib.model.predicate import Predicate
from lakelib.ops import changes, consumers
from lakelib.ops.runtime import Runtime

if TYPE_CHECKING:
    from lakelib.table import Table


class Consumer:
    """A consumer of a table's changes. A handle: its properties tell how it stands at this moment.

    It moves on from the position that was read, so that of two processes which have read the same one moves it, and the
    other is told. What it has not read yet is kept from expiry for as long as `keep_for` says.
    """

    def __init__(self, runtime: Runtime, table: "Table", info: ConsumerInfo) -> None:
        self._runtime = runtime
        self._table = table
        self._info = info
        self._seen = info.position
        self._read: tuple[int, int] | None = None
        """What was read last, and did not end in a move: after which snapshot, and up to which."""

    @property
    def name(self) -> str:
        return self._info.name

    @property
    def table(self) -> "Table":
        return self._table

    @property
    def position(self) -> int:
        """All up to this snapshot was read; 0 is before the first."""
        self._seen = self._now().position
        return self._seen

    @property
    def keep_for(self) -> timedelta:
        """How long a commit that was not read yet is kept from expiry, with the state before it."""
        return self._now().keep_for

    @property
    def lag(self) -> Lag:
        """What was not read yet: snapshots, rows, and the age of the oldest. Compactions do not count."""
        return consumers.look_at_consumer(self._runtime, self._table.ref, self.name).lag

    def read(
        self,
        view: str = "latest",
        limit: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
    ) -> Changes:
        """The changes since the position, as `Table.changes` gives them: all, or those of so many commits. Moves
        nothing: `advance()` does, once what was made of them is safe, or `Transaction.advance` with that."""
        table, position = self._table.info, self._now().position
        until = consumers.choose_end(table, position, limit)
        named = columns if columns is None or isinstance(columns, str) else tuple(columns)
        request = changes.ChangesRequest(
            after=position,
            until=until,
            view=view,
            columns=named,  # type: ignore[arg-type]
            where=where,
        )
        found = Changes(self._runtime, changes.plan_changes(self._runtime, table, request))
        self._read = (position, until)
        return found

    def advance(self, to: Any = None, *, backwards: bool = False) -> int:
        """Moves to a snapshot, or to the end of changes that were read; to the end of what was read last, unless told.
        The new position. To go back has to be told.

        Raises ConflictError if somebody else has moved it since it was read: nothing is moved then.
        """
        wanted = self.plan_advance(to, backwards=backwards)
        consumers.advance(self._runtime, wanted)
        self.note_advance(wanted)
        return wanted.to_id

    def plan_advance(self, to: Any = None, *, backwards: bool = False) -> Advance:
        """How it would move now: for lakelib's own parts."""
        from_id, to_id = self._span(to)
        return consumers.plan_advance(self._info, from_id, to_id, backwards=checked_flag("backwards", backwards))

    def note_advance(self, done: Advance) -> None:
        """It has moved: for lakelib's own parts."""
        self._seen, self._read = done.to_id, None

    def remove(self) -> None:
        """It holds nothing any more, and its name is free."""
        consumers.remove_consumer(self._runtime, self._table.ref, self.name)

    def _span(self, to: Any) -> tuple[int, Any]:
        """From which position it moves, and to which."""
        if to is None and self._read is None:
            raise InvalidInputError(
                f"Consumer {self.name!r} has read nothing here since it moved last.",
                kind="nothing_read",
                remedy="Read first, or say to which snapshot it is to move.",
            )
        if to is None:
            assert self._read is not None
            return self._read
        if isinstance(to, Changes):
            self._check_own(to)
            return to.after_id, to.until_id
        return (self._seen if self._read is None else self._read[0]), to

    def _check_own(self, read: Changes) -> None:
        if read.table_name != self._table.name:
            raise InvalidInputError(
                f"Consumer {self.name!r} of {self._table.name} cannot move by {read!r}.",
                kind="invalid_position",
                remedy="Give changes of its own table.",
            )

    def _now(self) -> ConsumerInfo:
        return consumers.find_consumer(self._runtime, self._table.ref, self.name)

    def _repr_html_(self) -> str:
        status = consumers.look_at_consumer(self._runtime, self._table.ref, self.name)
        facts = {
            "position": status.position,
            "head": status.head,
            "lag": status.lag,
            "keeps for": status.keep_for,
            "holds": status.holds,
            "advanced at": status.advanced_at,
        }
        title = f"Consumer {self.name!r} of {self._table.name}"
        return html_table(title, ("what", "value"), facts.items(), len(facts))

    def __repr__(self) -> str:
        try:
            status = consumers.look_at_consumer(self._runtime, self._table.ref, self.name)
        except NotFoundError:
            return f"<Consumer {self.name!r} of {self._table.name}: removed>"
        place = f"at snapshot {status.position} of {status.head}"
        return f"<Consumer {self.name!r} of {self._table.name} {place}: {status.lag} behind>"
