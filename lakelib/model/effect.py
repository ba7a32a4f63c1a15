"""Frozen values: what a commit has done to the rows that a table shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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


UNKNOWN = Effect()
NOTHING = Effect(inserted=0, updated=0, deleted=0)
