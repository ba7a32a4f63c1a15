"""Frozen values: in which steps a catalog comes to the present schema, and how far it has come."""

from enum import Enum

from lakelib.dataclass import dataclass


class Phase(Enum):
    """What a step means for clients of the version before."""

    PRE = "pre"
    """It only adds: they go on working."""
    POST = "post"
    """They are shut out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One migration's part of a phase, or the functions, which are brought up to date as a whole."""

    version: int | None
    """None of the functions."""
    name: str
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """What `migrate` has done; after a dry run, what it would have."""

    done: tuple[Step, ...]
    due: tuple[Step, ...]
    """What is left to do."""
    dry_run: bool
