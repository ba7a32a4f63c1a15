"""What the pipeline is told to do, as frozen values. Nothing slow is loaded for them."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from lakelib.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The lake that is worked on, where the work runs, and how it tells of itself."""

    warehouse: str | None
    catalog: str | None = field(repr=False)
    master: str | None
    remote: str | None = field(repr=False)
    """The address of a Spark Connect server, which may hold a token."""
    spark_conf: Mapping[str, str] = field(repr=False)
    """Settings of the session on that server."""
    result: Path | None
    progress: bool | None
    """None: if somebody is watching."""
    quiet: bool = False
    """Nothing but how it ended is told: a program reads along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Rows of files, as they are or filtered."""

    format: str
    paths: tuple[str, ...]
    options: Mapping[str, str]
    schema: str | None
    columns: tuple[str, ...] | None
    where: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileView:
    name: str
    format: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeView:
    name: str
    table: str
    at: int | str | datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Rows of a query over views of files and of the lake's tables."""

    text: str
    file_views: tuple[FileView, ...]
    lake_views: tuple[LakeView, ...]
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteArguments:
    """`write` are the keywords of the table's write; `partitions` and `where` are for an overwrite only."""

    table: str
    mode: str
    source: Files | Query
    partitions: str | Mapping[str, str | None]
    where: str | None = None
    write: Mapping[str, Any] = field(repr=False)
    surroundings: Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestArguments:
    spec: Path
    partition: str
    key: tuple[str, int]
    at: Mapping[str, str]
    """Snapshots, tags or moments by table."""
    properties: Mapping[str, str]
    report: Path | None
    surroundings: Surroundings
    full: bool = False
    """Whether a table that follows changes is made from scratch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillArguments:
    specs: tuple[Path, ...]
    items: tuple[tuple[str, str], ...]
    """Tables and the keys of their partitions, in the order given, each once."""
    key: tuple[str, int]
    downstream: bool
    report: Path | None
    surroundings: Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishArguments:
    commits: tuple[UUID | str, ...]
    specs: tuple[Path, ...]
    by: str | None
    reason: str | None
    follow: bool
    """Whether what the specs say follows is done, too."""
    surroundings: Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectArguments:
    commits: tuple[UUID | str, ...]
    reason: str
    by: str | None = None
    surroundings: Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Tables by name, those of a namespace, or all: one of the three."""

    tables: tuple[str, ...]
    namespace: str | None
    all: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactArguments:
    selection: Selection
    full: bool
    where: str | None
    surroundings: Surroundings
    buckets: int | str | None = None
    """What the tables are to have first; None leaves them as they are."""
    rewrite: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainArguments:
    selection: Selection
    expire: dict[str, Any] | None
    """The keywords of Table.expire; None: nothing expires."""
    vacuum: dict[str, Any] | None
    """The keywords of Lake.vacuum; None: nothing is deleted."""
    dry_run: bool
    surroundings: Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportArguments:
    """`how` are the keywords of `Lake.import_delta` and `Lake.import_parquet`."""

    table: str
    source: str
    kind: str
    how: Mapping[str, Any]
    surroundings: Surroundings
