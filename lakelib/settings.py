"""Frozen settings, from arguments, then the environment, then a properties file. Standard library only."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError

SCHEMES = ("file", "s3", "hdfs", "gs")
SCHEME_ALIASES = {"s3a": "s3", "s3n": "s3"}

DEFAULT_WAREHOUSE = "./.lake/warehouse"
EARLIER_CATALOG = "./.lake/catalog"
"""Where a lake's own catalog was before it was in the warehouse, and is where the warehouse is remote."""

_LONGEST_TIMEOUT_SECONDS = 86_400

LAKE_HOME = "LAKE_HOME"
PROPERTIES_FILE = "lake.properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """How to reach the stores. What is None is left to the store's own defaults."""

    default_fs: str | None = None
    """Completes a path without a scheme; None completes it to a local path."""
    s3_endpoint: str | None = None
    s3_region: str | None = None
    s3_access_key: str | None = field(default=None, repr=False)
    s3_secret_key: str | None = field(default=None, repr=False)
    s3_session_token: str | None = field(default=None, repr=False)
    s3_profile: str | None = None
    s3_timeout_seconds: float | None = None
    """How long a request to S3 may take, all tries together, when nothing is heard of it; an upload twice that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a lake is connected with. Passwords are in no repr and in no message."""

    warehouse: str = DEFAULT_WAREHOUSE
    """As it was given: `storage.paths.complete_uri` completes it."""
    catalog: str | None = field(default=None, repr=False)
    """URL of the PostgreSQL catalog; None is the embedded server, whose files are in `embedded_catalog`."""
    embedded_catalog: str | None = None
    """None is in the warehouse, if that is local (see `storage.marker`)."""
    storage: StorageSettings = field(default_factory=StorageSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A value that somebody set, and where. The value is not in its repr: it may be a password."""

    value: str = field(repr=False)
    source: str


_Layer = Mapping[str, _Given]

_KEY = re.compile(r"[A-Za-z0-9._-]*")
_AFTER_LOGIN = re.compile(r"(?:[^@/]*@)?([^/?]*)(?:/([^?]*))?(?:\?(.*))?", re.DOTALL)
"""Hosts, database and parameters, as the driver reads a URL."""
_SHOWN = ("host", "hostaddr", "port", "dbname", "user")
_ESCAPES = "Within a user's name, a password and the like write %2F for /, %3F for ?, %40 for @ and %25 for %."

_ENVIRONMENT = {
    "catalog": ("LAKE_CATALOG",),
    "warehouse": ("LAKE_WAREHOUSE",),
    "default_fs": ("LAKE_DEFAULT_FS",),
    "s3_endpoint": ("LAKE_S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "s3_region": ("LAKE_S3_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"),
    "s3_profile": ("AWS_PROFILE",),
    "s3_timeout_seconds": ("LAKE_S3_TIMEOUT_SECONDS",),
}
"""Where two variables set one thing, the first one counts."""
_CREDENTIALS = ("s3_access_key", "s3_secret_key", "s3_session_token")
_ENVIRONMENT_CREDENTIALS = (
    ("LAKE_S3_ACCESS_KEY_ID", "LAKE_S3_SECRET_ACCESS_KEY"),
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
)
_PROPERTIES = {
    "lake.pg.url": "catalog",
    "lake.pg.username": "pg_username",
    "lake.pg.password": "pg_password",
    "lake.warehouse": "warehouse",
    "lake.s3.endpoint": "s3_endpoint",
    "lake.s3.region": "s3_region",
    "lake.s3.access_key": "s3_access_key",
    "lake.s3.secret_key": "s3_secret_key",
    "lake.s3.timeout_seconds": "s3_timeout_seconds",
    "fs.default.name": "default_fs",
    "fs.defaultFS": "default_fs",
}
"""Where two keys set one thing, the later one here counts."""
_NUMBERS = ("s3_timeout_seconds",)
_ARGUMENTS = ("warehouse", "catalog", *(option.name for option in fields(StorageSettings)))


def load_settings(
    *,
    warehouse: str | os.PathLike[str] | None = None,
    catalog: str | None = None,
    environ: Mapping[str, str],
    **overrides: str | float | None,
) -> Settings:
    """Settings from the arguments, else the environment, else the properties file named by LAKE_HOME, else defaults.

    `overrides` are the fields of StorageSettings. An empty value counts as not set. Credentials are taken together
    from one source. Raises InvalidInputError naming the setting and its source if one is wrong.
    """
    place = os.fspath(warehouse) if isinstance(warehouse, os.PathLike) else warehouse
    arguments = _from_arguments({"warehouse": place, "catalog": catalog, **_numbers_as_text(overrides)})
    given: _Layer = {}
    for layer in (_from_file(environ), _from_environment(environ), arguments):
        given = _overlay(given, layer)
    for name, one in given.items():
        _check_text(name, one)
    _check_credentials(given)
    checked: dict[str, Any] = {name: _CHECKS.get(name, _accept)(name, one) for name, one in given.items()}
    storage = StorageSettings(**{name: text for name, text in checked.items() if name not in ("warehouse", "catalog")})
    return Settings(
        warehouse=checked.get("warehouse", DEFAULT_WAREHOUSE), catalog=checked.get("catalog"), storage=storage
    )


def _numbers_as_text(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Text is what all settings are until they are checked."""
    return {
        name: str(value) if type(value) in (int, float) and name in _NUMBERS else value
        for name, value in arguments.items()
    }


def _from_arguments(arguments: Mapping[str, Any]) -> _Layer:
    for name, value in arguments.items():
        if name not in _ARGUMENTS:
            raise InvalidInputError(
                f"Unknown setting {name!r}, given as an argument.",
                kind="unknown_setting",
                remedy=f"Known: {', '.join(_ARGUMENTS)}.",
            )
        if value is not None and not isinstance(value, str):
            raise InvalidInputError(
                f"Setting {name}, from argument {name}, is of type {type(value).__name__}.",
                kind="invalid_setting",
                remedy="Give text.",
            )
    return {name: _Given(value=value, source=f"argument {name}") for name, value in arguments.items() if value}


def _from_environment(environ: Mapping[str, str]) -> _Layer:
    found = dict(_first_credentials(environ))
    for name, variables in _ENVIRONMENT.items():
        variable = next((variable for variable in variables if environ.get(variable)), None)
        if variable:
            found[name] = _variable(environ, variable)
    return found


def _first_credentials(environ: Mapping[str, str]) -> _Layer:
    for variables in _ENVIRONMENT_CREDENTIALS:
        found = {
            name: _variable(environ, variable)
            for name, variable in zip(_CREDENTIALS, variables, strict=False)
            if environ.get(variable)
        }
        if found:
            return found
    return {}


def _variable(environ: Mapping[str, str], variable: str) -> _Given:
    return _Given(value=environ[variable], source=f"environment variable {variable}")


def _from_file(environ: Mapping[str, str]) -> _Layer:
    if not environ.get(LAKE_HOME):
        return {}
    path = Path(environ[LAKE_HOME])
    path = path / PROPERTIES_FILE if path.is_dir() else path
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidInputError(
            f"Cannot read the properties file {path}, named by the environment variable {LAKE_HOME}: {reason}.",
            kind="unreadable_settings",
            remedy=f"Name a readable file, or a folder that holds {PROPERTIES_FILE}.",
        ) from error
    properties = {key: given for key, given in _lines(path, text) if _is_ours(key, given)}
    return _with_login({name: properties[key] for key, name in _PROPERTIES.items() if key in properties})


def _lines(path: Path, text: str) -> Iterator[tuple[str, _Given]]:
    for number, line in enumerate(text.splitlines(), start=1):
        key, equals, value = (part.strip() for part in line.partition("="))
        source = f"file {path} line {number}"
        if key.startswith("#") or (not key and not equals):
            continue
        if not equals:
            raise InvalidInputError(
                f"There is no '=' in {source}.",
                kind="unreadable_settings",
                remedy="Write key=value or # comment.",
            )
        yield key, _Given(value=value, source=f"{source} ({_shown_key(key)})")


def _shown_key(key: str) -> str:
    """Who writes `lake.pg.password secret=1` has the beginning of the secret before the equals sign."""
    return key if key in _PROPERTIES else _KEY.match(key)[0]  # type: ignore[index]


def _is_ours(key: str, given: _Given) -> bool:
    """Other programs may keep settings in the same file; a key of ours that nobody knows is a slip of the pen."""
    if key.startswith("lake.") and key not in _PROPERTIES:
        raise InvalidInputError(
            f"Unknown setting {_shown_key(key)!r} in {given.source}.",
            kind="unknown_setting",
            remedy=f"Known: {', '.join(_PROPERTIES)}.",
        )
    return key in _PROPERTIES and bool(given.value)


def _with_login(layer: dict[str, _Given]) -> _Layer:
    """The file's user name and password belong to the file's catalog URL: put into it."""
    username, password = layer.pop("pg_username", None), layer.pop("pg_password", None)
    url = layer.get("catalog")
    known = username or password
    if known is None:
        return layer
    if url is None or username is None:
        missing = "lake.pg.url" if url is None else "lake.pg.username"
        raise InvalidInputError(
            f"{known.source} is given without {missing}.", kind="incomplete_setting", remedy=f"Set {missing} beside it."
        )
    scheme, separator, rest = url.value.removeprefix("jdbc:").partition("://")
    login = quote(username.value, safe="") + (f":{quote(password.value, safe='')}" if password else "")
    return {**layer, "catalog": _Given(value=f"{scheme}{separator}{login}@{rest}", source=url.source)}


def _overlay(below: _Layer, above: _Layer) -> _Layer:
    """What is above hides what is below; credentials hide all credentials below, for halves do not fit together."""
    if any(name in above for name in _CREDENTIALS):
        below = {name: given for name, given in below.items() if name not in _CREDENTIALS}
    return {**below, **above}


def _check_text(name: str, given: _Given) -> None:
    """A file's last line break that came along must not become part of a name, or of a password."""
    if not given.value.isprintable() and any(char < " " or char == "\x7f" for char in given.value):
        raise _wrong(name, given, "has a line break or another control character", "Leave it out.")
    if not _is_utf8(given.value):
        raise _wrong(name, given, "is no text in UTF-8", "Give text in UTF-8.")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_credentials(given: _Layer) -> None:
    access, secret, token = (given.get(name) for name in _CREDENTIALS)
    known = access or secret or token
    if known and not (access and secret):
        missing = "secret key" if access else "access key"
        raise InvalidInputError(
            f"S3 credentials from {known.source} are incomplete: the {missing} is missing.",
            kind="incomplete_setting",
            remedy=f"Give the {missing} in the same place.",
        )


def _accept(name: str, given: _Given) -> str:
    return given.value


def _checked_location(name: str, given: _Given) -> str:
    matched = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):/", given.value)
    if matched is None:
        return given.value
    scheme = SCHEME_ALIASES.get(matched[1].lower(), matched[1].lower())
    if scheme not in SCHEMES:
        raise _wrong(name, given, f"has the unknown scheme {scheme!r}", f"Known: {', '.join(SCHEMES)}.")
    authority = given.value.partition("://")[2].partition("/")[0]
    if holds_login(scheme, authority):
        raise _wrong(name, given, "has credentials in its URI", "Give them as settings of their own.")
    if scheme != "file" and not authority:
        raise _wrong(name, given, "names no bucket or host", f"Write {scheme}://name/path.")
    return given.value


def holds_login(scheme: str, authority: str) -> bool:
    """Whether there are credentials where a bucket or a host belongs. The name of a bucket has neither @ nor :, where a
    secret key may have a / that ends it too early."""
    if scheme in ("s3", "gs"):
        return "@" in authority or (":" in authority and not authority.startswith("arn:"))
    return ":" in authority.rpartition("@")[0]


def _checked_default_fs(name: str, given: _Given) -> str:
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", given.value):
        raise _wrong(name, given, "has no scheme", "Write a URI such as hdfs://host:8020 or s3://bucket.")
    return _checked_location(name, given)


def _checked_catalog(name: str, given: _Given) -> str:
    url = given.value.removeprefix("jdbc:")
    problem = find_url_problem(url)
    if problem is not None:
        raise _wrong(name, given, *problem)
    return url


def find_url_problem(url: str) -> tuple[str, str] | None:
    """What is wrong with the URL of a catalog, and the remedy; nothing of the URL is in either, for it may be a secret.

    The driver takes what stands behind an unescaped / in a password for the database, and what stands behind an @ for
    the host, which messages show: such URLs are refused.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("postgresql", "postgres"):
        return "is not the URL of a PostgreSQL database", "Write postgresql://user@host:5432/database."
    hosts, database, query = _AFTER_LOGIN.fullmatch(rest).groups("")  # type: ignore[union-attr]
    for host in hosts.split(","):
        port = re.sub(r"^\[[^\]]*\]", "", host).partition(":")[2]
        if port and not (port.isascii() and port.isdecimal() and 0 < int(port) < 65_536):
            return "has a port that is no number from 1 to 65535", f"Correct the port. {_ESCAPES}"
    if "@" in hosts or "@" in database or "/" in database or any(map(_shows_an_at, query.split("&"))):
        return "has an @ or a / behind its host", _ESCAPES
    return None


def _shows_an_at(parameter: str) -> bool:
    """Whether one of those that messages show has an @. Folders have, and what is not shown may have."""
    name, _, value = parameter.partition("=")
    return "@" in value and name in _SHOWN and not (name == "host" and value.startswith("/"))


def _checked_endpoint(name: str, given: _Given) -> str:
    try:
        url = urlsplit(given.value)
        good = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
        has_login = "@" in url.netloc
    except ValueError:
        good = has_login = False
    if has_login:
        raise _wrong(name, given, "has credentials in its URL", "Give them as settings of their own.")
    if not good:
        raise _wrong(name, given, "is not the URL of a service", "Write http://host:port or https://host.")
    return given.value.rstrip("/")


def _checked_seconds(name: str, given: _Given) -> float:
    try:
        seconds = float(given.value)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= _LONGEST_TIMEOUT_SECONDS:
        raise _wrong(name, given, f"is {given.value!r}", f"Give a number from 1 to {_LONGEST_TIMEOUT_SECONDS}.")
    return seconds


_CHECKS: Mapping[str, Callable[[str, _Given], Any]] = {
    "s3_timeout_seconds": _checked_seconds,
    "warehouse": _checked_location,
    "default_fs": _checked_default_fs,
    "catalog": _checked_catalog,
    "s3_endpoint": _checked_endpoint,
}


def _wrong(name: str, given: _Given, what: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"Setting {name}, from {given.source}, {what}.", kind="invalid_setting", remedy=remedy)
