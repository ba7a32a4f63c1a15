"""Pure. Which text the catalog can keep."""


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
