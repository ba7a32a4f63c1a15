"""Pure. Which text the catalog can keep, which name a person may have meant, and how many things are told."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_INDEXED_BYTES = 2000
"""Of a text by which the catalog finds something, in UTF-8: PostgreSQL's indexes take no entry much longer."""


def is_said(text: object) -> bool:
    """Whether it is text that the catalog can keep, and not blank: a person's name, or a reason."""
    return isinstance(text, str) and bool(text.strip()) and is_storable(text)


def is_storable(text: str) -> bool:
    """Whether the text has neither the character NUL nor lone surrogates."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_indexable(text: str) -> bool:
    """Whether the catalog can keep the text, and find something by it."""
    return is_storable(text) and len(text.encode()) <= LONGEST_INDEXED_BYTES


def meant(name: object, known: Iterable[str]) -> str:
    """A question for who has named what is not there: `Do you mean amount?`; "" where no known name is near."""
    folded = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), folded) if isinstance(name, str) else []
    return f"Do you mean {' or '.join(folded[each] for each in near)}?" if near else ""


def choose_from(what: str, name: object, known: Iterable[str]) -> str:
    """The remedy for a name that is not there: what may be meant, and all that is there."""
    known = list(known)
    return f"{meant(name, known)} {what}: {', '.join(known)}.".lstrip()


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
