"""Pure. Which text the catalog can keep."""

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
