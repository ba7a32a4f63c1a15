"""Frozen values: tables, snapshots and commits as the catalog knows them."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass
from lakelib.model.files import NewFile
from lakelib.model.gate import RequiredSuite
from lakelib.model.html import html_table
from lakelib.model.merge import Merge
from lakelib.model.options import TableOptions
from lakelib.model.predicate import Predicate
from lakelib.model.schema import Column, TableSchema

MAX_DEPTH = 16
"""The deepest split of a table's keys: 65,536 buckets a partition."""


class CommitKind(Enum):
    APPEND = "append"
    UPSERT = "upsert"
    OVERWRITE = "overwrite"
    REPLACE = "replace"
    """Rows in place of those for which a predicate was TRUE."""
    DELETE = "delete"
    EVOLVE = "evolve"
    COMPACT = "compact"
    """The same rows in other files: no answer changes."""
    ROLLBACK = "rollback"
    """The files of an older snapshot."""


SILENT_KINDS = frozenset((CommitKind.COMPACT.value, CommitKind.EVOLVE.value))
"""Of commits after which every row is as it was before."""


class CommitState(Enum):
    STAGED = "staged"
    PUBLISHED = "published"
    REJECTED = "rejected"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """How deep writers split a partition's keys. `fixed_depth` is None for dynamic and postpone."""

    mode: str
    """"fixed", "dynamic", "postpone", or "none" for an append table."""
    fixed_depth: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef:
    """Which table is meant, whatever has become of it. Who takes a TableRef loads; who takes a TableInfo trusts it."""

    id: int
    full_name: str


@dataclass(frozen=True, kw_only=True)  # without slots: it remembers its columns
class TableInfo:
    """A table as it was when it was loaded: what a use case needs to know of it. Columns are named by id."""

    id: int
    namespace: str
    name: str
    location: str
    schema: TableSchema
    primary_key_ids: tuple[int, ...]
    partition_ids: tuple[int, ...]
    sequence_ids: tuple[int, ...]
    buckets: Buckets
    merge: Merge
    options: TableOptions
    head_id: int
    """0 for a table without a snapshot."""
    loaded_at: datetime = field(compare=False)
    """The catalog's time when it was so."""
    required_suite: RequiredSuite | None = None
    """None where `options.required_gate` is nothing, or a gate that is required by its name alone."""
    definition: int | None = field(default=None, compare=False)
    """What the catalog knows the schema, the options and the gate by; None where it was not asked for."""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def ref(self) -> TableRef:
        return TableRef(id=self.id, full_name=self.full_name)

    @cached_property
    def primary_key(self) -> tuple[Column, ...]:
        return self.schema.select(self.primary_key_ids)

    @cached_property
    def partition_by(self) -> tuple[Column, ...]:
        return self.schema.select(self.partition_ids)

    @cached_property
    def sequence_by(self) -> tuple[Column, ...]:
        return self.schema.select(self.sequence_ids)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Snapshot:
    """One published version of a table."""

    id: int
    kind: str
    committed_at: datetime
    schema_id: int
    commit_id: UUID
    summary: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = field(default=False, compare=False)
    """Whether it was published before, for the same work or for what made that obsolete: the rows that were given now
    are not in it."""

    def _repr_html_(self) -> str:
        facts = {"commit": self.commit_id, "schema": self.schema_id} | dict(self.summary) | dict(self.properties)
        return html_table(repr(self)[1:-1], ("what", "value"), facts.items(), len(facts))

    def __repr__(self) -> str:
        moment = self.committed_at.isoformat(sep=" ", timespec="seconds")
        again = ", replayed" if self.replayed else ""
        return f"<Snapshot {self.id}: {self.kind} {self._what} at {moment}{again}>"

    @property
    def _what(self) -> str:
        if "restores" in self.summary:
            return f"to {self.summary['restores']}"
        if "columns" in self.summary:
            return str(self.summary["columns"]) or "of nothing"
        rows, deletes = self.summary.get("rows_written", 0), self.summary.get("deletes_written", 0)
        return f"of {rows:,} rows" + (f", {deletes:,} deletes" if deletes else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A snapshot of the past, expired or not."""

    id: int
    kind: str
    is_kept: bool

    @property
    def is_silent(self) -> bool:
        """Whether every row is as it was before."""
        return self.kind in SILENT_KINDS

    @property
    def only_adds(self) -> bool:
        """Whether all files that were there before still are."""
        return self.kind in (CommitKind.APPEND.value, CommitKind.UPSERT.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """An application and the version of its work: of one application a version is committed once, in rising order."""

    application: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A commit that did, or was to do, a piece of work, and what has become of it."""

    commit_id: UUID
    version: int
    """Of the key: a later one than was asked for, where that made the work obsolete."""
    state: CommitState
    base_snapshot_id: int
    snapshot_id: int | None
    """What it became, if it was published."""
    reason: str | None
    """Why it was rejected, or has expired."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A commit to be staged: everything that publishing it will change."""

    commit_id: UUID
    table_id: int
    kind: CommitKind
    base_snapshot_id: int
    """The head that the proposal was made from; 0 for none."""
    began_at: datetime
    """No file is older, by the catalog's clock."""
    definition: int | None = None
    """The table's, if it was remembered: it has to be the present one."""
    schema: TableSchema
    new_schema: TableSchema | None = None
    """What the table's schema becomes, if the commit changes it; `schema` is then what it was made from."""
    files: tuple[NewFile, ...] = ()
    removed_file_ids: tuple[int, ...] = ()
    read_scope: "ReadScope"
    partition_column_ids: tuple[int, ...] = ()
    keys: "KeysLooked | None" = None
    """How far its keys were looked for in other partitions, where each is to be in one."""
    restores: int | None = None
    """The snapshot whose files a rollback brings back: the catalog finds them."""
    idempotency_key: IdempotencyKey | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysLooked:
    """How far the keys of a commit's rows were looked for in other partitions."""

    until: int
    """The snapshot at which they were."""
    marks_run: int
    """From this run on its files hold nothing but the marks of rows that leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadScope:
    """What the commit's content depends on: it conflicts with rows added there since its base."""

    whole_table: bool = False
    partition_ids: tuple[int, ...] = ()
    where: Predicate | None = None
    """Also the partitions that come into being until the publish, where this may be TRUE."""
    own_partitions: bool = False
    """Also the partitions of the commit's own files, new ones too."""
    rows_from_base: bool = False
    """Also all rows of the base, from which its own were made. An overwrite replaces no more for that."""
    beneath: tuple[UUID, ...] = ()
    """And the rows of these staged commits, which are published before it in its transaction."""


NO_READ = ReadScope()
WHOLE_TABLE = ReadScope(whole_table=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A person's decision to publish a commit whatever its gate says."""

    by: str
    reason: str
