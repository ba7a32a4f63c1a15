"""Frozen values: what a commit has done to the rows that a table shows."""

from collections.abc import Mapping
from typing import Any

from lakelib.dataclass import dataclass

ROWS_BEFORE = "rows_before"
_CHANGES = ("inserted", "updated", "deleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How many rows came, were replaced by others of their key, and went. None where nobody knows without reading."""

    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> "Effect":
        return cls(
            inserted=summary.get("rows_inserted"),
            updated=summary.get("rows_updated"),
            deleted=summary.get("rows_deleted"),
        )

    @property
    def is_known(self) -> bool:
        return None not in (self.inserted, self.updated, self.deleted)

    def as_summary(self) -> dict[str, int | None]:
        return {"rows_inserted": self.inserted, "rows_updated": self.updated, "rows_deleted": self.deleted}

    def __add__(self, other: "Effect") -> "Effect":
        """What is not known of one is not known of both."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in _CHANGES)
        sums = (None if None in pair else sum(pair) for pair in pairs)
        return Effect(**dict(zip(_CHANGES, sums, strict=True)))

    def __str__(self) -> str:
        """ "3 inserted, 12 deleted", as far as it is known."""
        known = ((getattr(self, name), name) for name in _CHANGES)
        return ", ".join(f"{count:,} {name}" for count, name in known if count is not None)


UNKNOWN = Effect()
NOTHING = Effect(inserted=0, updated=0, deleted=0)


def measured_text(observed: Any) -> str | None:
    """ "120 rows deleted, of 1,000 that there were", of what a check of a commit's effect has observed; else None."""
    if not isinstance(observed, Mapping):
        return None
    effect = str(Effect.of(observed))
    if not effect:
        return None
    count, _, change = effect.partition(" ")
    before = observed.get(ROWS_BEFORE)
    return f"{count} rows {change}" + ("" if before is None else f", of {before:,} that there were")
