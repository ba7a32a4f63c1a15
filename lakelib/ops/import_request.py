"""Part of imports: what a caller asks for, checked before anything is done."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, UnknownOptionError
from lakelib.model.flags import checked_flag
from lakelib.model.imports import Duplicates
from lakelib.model.text import choose_from

Tell = Callable[[int, int], None]
"""Hears how many bytes of the source are copied, and of how many."""


class ImportOptions(TypedDict, total=False):
    """The keywords that every import takes. What is left out, or None, is the source's own, or the default."""

    primary_key: Sequence[str]
    partition_by: Sequence[str] | None
    sequence_by: Sequence[str]
    buckets: int | str | None
    options: Mapping[str, Any] | None
    schema: Any
    """The table's columns; None: all that the source has, in its types."""
    duplicates: str
    batch_bytes: int | None
    session: Any
    dry_run: bool
    tell: Tell | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What a caller asks for, checked."""

    primary_key: Sequence[str]
    partition_by: Sequence[str] | None
    sequence_by: Sequence[str]
    buckets: int | str | None
    options: Mapping[str, Any]
    schema: Any
    duplicates: Duplicates
    batch_bytes: int | None
    session: Any
    dry_run: bool
    tell: Tell | None
    version: int | None = None


def parse_import(*also_known: str, **given: Any) -> ImportRequest:
    """Raises InvalidInputError for an option that is not known, or wrong."""
    unknown = next((name for name in given if name not in ImportOptions.__annotations__), None)
    if unknown is not None:
        known = (*also_known, *ImportOptions.__annotations__)
        raise UnknownOptionError(f"Unknown option {unknown!r}.", remedy=choose_from("Known", unknown, known))
    return ImportRequest(
        primary_key=given.get("primary_key") or (),
        partition_by=given.get("partition_by"),
        sequence_by=given.get("sequence_by") or (),
        buckets=given.get("buckets"),
        options=given.get("options") or {},
        schema=given.get("schema"),
        duplicates=_parse_duplicates(given.get("duplicates", Duplicates.REFUSE.value)),
        batch_bytes=_parse_batch_bytes(given.get("batch_bytes")),
        session=given.get("session"),
        dry_run=checked_flag("dry_run", given.get("dry_run", False)),
        tell=given.get("tell"),
    )


def _parse_duplicates(given: str) -> Duplicates:
    try:
        return Duplicates(given)
    except ValueError:
        raise InvalidInputError(
            f"duplicates is {given!r}.",
            kind="invalid_option",
            remedy=choose_from("Known", str(given), [each.value for each in Duplicates]),
        ) from None


def _parse_batch_bytes(given: Any) -> int | None:
    is_number = isinstance(given, int) and not isinstance(given, bool) and given > 0
    if given is not None and not is_number:
        raise InvalidInputError(
            f"batch_bytes is {given!r}.", kind="invalid_option", remedy="Give a number of bytes above 0."
        )
    checked: int | None = given
    return checked
