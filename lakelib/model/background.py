"""Frozen values: what people ask beside a verdict: where the rows come from, which failed, how it was before."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.model.verdict import CheckResult


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingRows:
    """Rows of a commit that were not as a check expects. Values are as JSON can hold them, sensitive ones masked."""

    command: str
    """Shows them, in a shell."""
    keys: tuple[Mapping[str, Any], ...] = ()
    """The columns of key and partition of the first ones."""
    values: tuple[tuple[Any, int], ...] = ()
    """What the check looked at in them, and how often; the most frequent first."""
    rows: int = 0
    """So many rows the values are counted in."""
    has_more: bool = False
    """Whether there are others that were not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The partition before: what its commit brought, and what the gate said of it."""

    partition: str
    rows: int | None
    checks: Mapping[str, CheckResult]
    """By name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What is known of a judged commit besides its verdict."""

    partition: str | None = None
    source: str | None = None
    """The path that its rows were read from."""
    source_files: str | None = None
    run: str | None = None
    """The application that staged it: in Airflow the DAG and its run."""
    engine: str | None = None
    """What made the rows of what was read, and why that."""
    rows: int | None = None
    effect: str = ""
    """How many rows come, are replaced and go, as far as it is known."""
    before: Before | None = None
    failing: Mapping[str, FailingRows] = field(default_factory=dict)
    """By the name of the check."""
