"""What every statement that changes something has in common: what is asked of it besides its text, and what it tells of
what it did. Each kind of them is one module, `sql_insert` and so on, and `sql_statements` knows all."""

from collections.abc import Callable, Mapping
from os import PathLike
from types import MappingProxyType
from typing import Any, Protocol, TypedDict, runtime_checkable
from uuid import UUID

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, UnknownOptionError
from lakelib.model.commit import CommitInfo
from lakelib.model.effect import NOTHING, Effect
from lakelib.model.table import Snapshot, TableInfo
from lakelib.model.text import choose_from
from lakelib.ops.commit import publish_changed
from lakelib.ops.request import WriteRequest, parse_request
from lakelib.ops.sql_plan import QueryExplanation
from lakelib.specs.suite import Suite

_TOLD = pa.schema(
    [
        ("statement", pa.string()),
        ("table", pa.string()),
        ("snapshot_id", pa.int64()),
        ("commit_id", pa.string()),
        ("rows_inserted", pa.int64()),
        ("rows_updated", pa.int64()),
        ("rows_deleted", pa.int64()),
        ("rows_written", pa.int64()),
        ("replayed", pa.bool_()),
    ]
)


class SqlOptions(TypedDict, total=False):
    """What may be asked of a statement that changes something, besides its text."""

    idempotency_key: tuple[str, int] | None
    properties: Mapping[str, str] | None
    gate: str | PathLike[str] | Suite | None


class Change(Protocol):
    """A statement that changes something. Its names are looked up and its types are known: what can be wrong with it
    was said, and nothing has changed yet."""

    @property
    def takes_away(self) -> bool:
        """Whether rows, columns, tables or snapshots may be gone afterwards."""

    def explain(self) -> QueryExplanation:
        """What it would do. Changes nothing."""

    def carry_out(self, request: WriteRequest) -> "Told":
        """Does it, at once."""


@runtime_checkable
class RowsChange(Change, Protocol):
    """One that changes the rows of a table, and may be a part of a transaction."""

    @property
    def table(self) -> TableInfo: ...

    @property
    def word(self) -> str:
        """What the statement is called."""

    def stage(self, request: WriteRequest) -> UUID:
        """The change as a staged commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a statement has done, or with EXPLAIN would do, which is read as a query's rows are."""

    text: str
    rows: pa.Table
    explanation: QueryExplanation | None = None

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    @property
    def is_explained(self) -> bool:
        return self.explanation is not None


def parse_options(options: Mapping[str, Any] | None) -> WriteRequest:
    """Raises InvalidInputError for options that are unknown or wrong."""
    if options is not None and not isinstance(options, Mapping):
        raise InvalidInputError(
            f"The options are {options!r}.",
            kind="invalid_option",
            remedy="Values of parameters are given by name: lake.sql('… $day', day=…). What is asked of a write is a"
            ' mapping: lake.sql("INSERT …", {"idempotency_key": ("loader", 17)}).',
        )
    for name in options or {}:
        if name not in SqlOptions.__annotations__:
            raise UnknownOptionError(
                f"Unknown option {name!r}.", remedy=choose_from("Known", name, SqlOptions.__annotations__)
            )
    return parse_request(**(options or {}))


def tell_changed(
    text: str, statement: str, table: str, publish: Callable[[WriteRequest], Snapshot], request: WriteRequest
) -> Told:
    """Publishes, and tells of it."""
    snapshot = publish_changed(publish, request)
    if snapshot is None:
        return tell(text, statement, table, known=NOTHING.as_summary() | {"rows_written": 0})
    return tell(text, statement, table, snapshot)


def tell(
    text: str,
    statement: str,
    table: str | None,
    snapshot: Snapshot | None = None,
    *,
    staged: CommitInfo | None = None,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> Told:
    """One row of what was done: to which table, as which snapshot, with how many rows, as far as that is known without
    reading them again. Without a snapshot it is `known`."""
    done = snapshot or staged
    summary = known if done is None else done.summary
    commit = snapshot.commit_id if snapshot is not None else None if staged is None else staged.id
    row = {
        "statement": statement,
        "table": table,
        "snapshot_id": None if snapshot is None else snapshot.id,
        "commit_id": None if commit is None else str(commit),
        **Effect.of(summary).as_summary(),
        "rows_written": summary.get("rows_written"),
        "replayed": None if snapshot is None else snapshot.replayed,
    }
    return Told(text=text, rows=pa.Table.from_pylist([row], schema=_TOLD))


def refuse_options(request: WriteRequest, statement: str) -> None:
    """Raises InvalidInputError where options are given to what makes no commit."""
    if request != WriteRequest():
        raise InvalidInputError(
            f"{statement} makes no commit, and takes no options.", kind="invalid_option", remedy="Leave them out."
        )


def explained(text: str, explanation: QueryExplanation) -> Told:
    """What EXPLAIN answers."""
    return Told(text=text, rows=pa.table({"plan": str(explanation).splitlines()}), explanation=explanation)
