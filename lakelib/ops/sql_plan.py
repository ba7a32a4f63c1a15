"""Frozen values: how a query of people's is carried out. Light, for most do without it."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.model.predicate import Predicate
from lakelib.ops import changes, read
from lakelib.ops.explain import Explanation
from lakelib.plan.asked import AskedQuery
from lakelib.rows.key_set import KeySet
from lakelib.rows.types import arrow_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a table, read when the query is planned."""

    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFrame:
    """Rows of a Spark data frame that was handed in: Spark reads them."""

    frame: Any
    schema: pa.Schema


Given = Known | KnownFrame
"""Rows that were handed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """What is known of all rows of a table that can make a difference, besides what the query says of them."""

    predicate: Predicate | None = None
    hash_prefixes: tuple[int, ...] | None = None
    """Where their keys are, if that is known."""
    among: KeySet | None = None
    """Their keys, and perhaps a few others, where they are many."""
    is_exact: bool = False
    """Whether none but these are to be seen, or so few that the engine is not to look at others: lakelib reads them."""


Plan = read.ScanPlan | changes.ChangesPlan | Given
"""What is read of one reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """What will be read. Pinned: running it twice gives the same rows."""

    text: str
    query: AskedQuery
    plans: Mapping[str, Plan]
    """By reference."""
    names: Mapping[str, str]
    """How the query calls them."""
    is_explained: bool = False
    exact: frozenset[str] = frozenset()
    """The references of which the engine sees no rows but those that its plan asks for."""
    most: int | None = None
    """How many rows are asked for, if not all: Spark computes no more. Here they stop coming when nobody asks."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, arrow_type(kind)) for name, kind in self.query.columns])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QueryExplanation:
    """How a query is carried out, or a statement that changes something. `str()` and `repr()` of it are text for
    people."""

    change: str = ""
    """What would change; '' where nothing does."""
    scans: tuple[Explanation, ...] = ()
    """What is read of each table, and what was left out."""
    others: tuple[str, ...] = ()
    """What else is read: changes, and what is known of tables."""
    plan: str = ""
    """What the engine makes of it."""

    def __str__(self) -> str:
        parts = [self.change, *(str(each) for each in self.scans), *self.others, self.plan]
        return "\n".join(each for each in parts if each)

    def __repr__(self) -> str:
        return str(self)
