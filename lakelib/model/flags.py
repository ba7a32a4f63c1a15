"""Pure. Arguments that are true or false: "no" is neither."""

from typing import Any

from lakelib.errors import InvalidInputError


def checked_flags(**given: Any) -> tuple[bool, ...]:
    """The values of several arguments, in their order. Raises as `checked_flag`."""
    return tuple(checked_flag(name, value) for name, value in given.items())


def checked_flag(name: str, value: Any) -> bool:
    """The value of the argument `name`. Raises InvalidInputError for anything but a bool, NumPy's included."""
    if isinstance(value, bool) or (type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")):
        return bool(value)
    shown = repr(value)
    raise InvalidInputError(
        f"{name} is {shown if len(shown) <= 80 else shown[:80] + '…'}.",
        kind="invalid_option",
        remedy="Give True or False.",
    )
