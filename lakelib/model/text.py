"""Pure. Which text the catalog can keep."""


def is_storable(text: str) -> bool:
    """Whether the text has neither the character NUL nor lone surrogates."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
