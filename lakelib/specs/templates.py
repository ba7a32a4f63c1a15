"""Pure. The places in a spec's texts that are filled in when they are used: `{partition}`, `{snapshot}`, `${NAME}`."""

import re
from collections.abc import Mapping

from lakelib.errors import InvalidInputError

_PLACE = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_PLAIN = re.compile(r"(?:\$\{[^{}]*\}|\{partition\}|[^*?\[{])*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

PARTITION_PLACE = "{partition}"
ALLOWED_PREFIX = "LAKE_VAR_"
ALLOWED_NAME = "LANDING"
ALLOWED_NAMES_VARIABLE = "LAKE_SPEC_VARIABLES"
"""Lists the names of further variables that specs may use, with commas between."""


def fill_variables(text: str, environ: Mapping[str, str], where: str) -> str:
    """`${NAME}` becomes what the environment says. Raises InvalidInputError, naming `where` the text is, for a variable
    that is not set, or empty, and for one that specs may not use: the environment has secrets, and what is filled in is
    seen in paths and logs."""
    listed = {name.strip() for name in environ.get(ALLOWED_NAMES_VARIABLE, "").split(",")}

    def value(matched: re.Match[str]) -> str:
        name = matched[1]
        if not (name == ALLOWED_NAME or name.startswith(ALLOWED_PREFIX) or name in listed):
            raise InvalidInputError(
                f"{where}: specs may not use the environment variable {name} in {text!r}.",
                kind="variable_not_allowed",
                remedy=f"Give it a name that begins with {ALLOWED_PREFIX}, or list it in {ALLOWED_NAMES_VARIABLE}, with"
                " commas between names, where the work runs.",
            )
        found = environ.get(name)
        if not found:
            raise InvalidInputError(
                f"{where}: the environment variable {name} in {text!r} is not set.",
                kind="variable_not_set",
                remedy=f"Set {name} where the work runs, or write the value into the spec.",
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


def plain_folder(path: str) -> str:
    """What a path, filled in or not, says of its folder before its first wildcard, with the slash."""
    matched = _PLAIN.match(path)
    assert matched is not None
    return matched[0][: matched[0].rfind("/") + 1]


def check_path_places(text: str) -> None:
    """Raises ValueError that says what is expected, for braces in a path that are neither the partition's place nor
    alternatives of a pattern: they would be looked for as they stand, and never be there."""
    for name in _PLACE.findall(_VARIABLE.sub("", text)):
        if "," not in name and f"{{{name}}}" != PARTITION_PLACE:
            raise ValueError(f"{PARTITION_PLACE}, or alternatives such as {{a,b}}, in braces; not {{{name}}}")


def check_places(text: str, known: tuple[str, ...]) -> None:
    """Raises ValueError that says what is expected, for braces that name none of the known places."""
    for name in _PLACE.findall(text):
        if name not in known:
            raise ValueError(f"{' or '.join(f'{{{each}}}' for each in known)} in braces; not {{{name}}}")
    rest = _PLACE.sub("", text)
    if "{" in rest or "}" in rest:
        raise ValueError("each brace to be closed, and opened")
