"""Part of use cases: the names that people give to tags and consumers."""

from lakelib.errors import InvalidInputError
from lakelib.model.text import is_storable

LONGEST_NAME = 200


def check_label(name: object, what: str, prefix: str) -> None:
    """Raises InvalidInputError for what cannot name a tag or a consumer; `prefix` stands before such a name where it
    stands for a snapshot."""
    if (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST_NAME
        and name == name.strip()
        and name.isprintable()
        and is_storable(name)
        and not name.startswith(prefix)
    ):
        return
    raise InvalidInputError(
        f"A {what} cannot be named {name!r}."
        if not isinstance(name, str) or len(name) <= LONGEST_NAME
        else f"A {what} cannot be named by {len(name):,} characters.",
        kind=f"invalid_{what}",
        remedy=f"Give 1 to {LONGEST_NAME} printable characters without a space at either end, and without {prefix!r} at"
        " the beginning.",
    )
