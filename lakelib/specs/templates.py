"""Pure. The places in a spec's texts that are filled in when they are used: `{partition}`, `{snapshot}`, `${NAME}`."""

import re
from collections.abc import Mapping

from lakelib.errors import InvalidInputError

_PLACE = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def fill_variables(text: str, environ: Mapping[str, str], where: str) -> str:
    """`${NAME}` becomes what the environment says. Raises InvalidInputError, naming `where` the text is, for a variable
    that is not set, or empty."""

    def value(matched: re.Match[str]) -> str:
        found = environ.get(matched[1])
        if not found:
            raise InvalidInputError(
                f"{where}: the environment variable {matched[1]} in {text!r} is not set.",
                kind="variable_not_set",
                remedy=f"Set {matched[1]} where the work runs, or write the value into the spec.",
            )
        return found

    return _VARIABLE.sub(value, text)


def check_variables(text: str) -> None:
    """Raises ValueError that says what is expected, for a `${…}` that is no name."""
    for name in _VARIABLE.findall(text):
        if not _NAME.fullmatch(name):
            raise ValueError(f"${{NAME}} with a name of letters, digits and _; not ${{{name}}}")


def fill_places(text: str, places: Mapping[str, object]) -> str:
    """`{partition}` and its like become their values; other braces stay as they are."""
    return _PLACE.sub(lambda matched: str(places.get(matched[1], matched[0])), text)


def check_places(text: str, known: tuple[str, ...]) -> None:
    """Raises ValueError that says what is expected, for braces that name none of the known places."""
    for name in _PLACE.findall(text):
        if name not in known:
            raise ValueError(f"{' or '.join(f'{{{each}}}' for each in known)} in braces; not {{{name}}}")
    rest = _PLACE.sub("", text)
    if "{" in rest or "}" in rest:
        raise ValueError("each brace to be closed, and opened")
