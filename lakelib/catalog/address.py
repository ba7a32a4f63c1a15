"""What may be said of the catalog's address: host, port, database and user. All else in it may be a secret."""

import re

from psycopg import ProgrammingError, conninfo

from lakelib.errors import InvalidInputError
from lakelib.settings import find_url_problem

_URLS = ("postgresql://", "postgres://")
_UNREADABLE = "(unreadable)"
_QUOTED = re.compile(r'".*"', re.DOTALL)
"""What the driver quotes of an address may be its password."""
_DEFAULT_HOST = "localhost"
_DEFAULT_PORT = "5432"


def place_of(url: str) -> str:
    """`host:port/database` for messages; a folder stands for the host where the server has a Unix socket in it."""
    return _place(_parts(url))


def login_of(url: str) -> str:
    """The place with the user: `host:port/database as user`."""
    parts = _parts(url)
    user = f" as {parts['user']}" if parts and parts.get("user") else ""
    return _place(parts) + user


def check_address(url: str) -> None:
    """Raises InvalidInputError when the text is no PostgreSQL connection string. It has nothing of the text: not in its
    message, and not in what led to it."""
    problem = find_url_problem(url) if url.startswith(_URLS) else None
    if problem is not None:
        what, remedy = problem
        raise InvalidInputError(f"The catalog's address {what}.", kind="invalid_catalog_url", remedy=remedy)
    said = _complaint(url)
    if said is not None:
        raise InvalidInputError(
            f"The catalog's address is not a PostgreSQL connection string: {said}.",
            kind="invalid_catalog_url",
            remedy="Give postgresql://user@host:5432/database.",
        )


def _complaint(url: str) -> str | None:
    """What the driver says of an address that it cannot read, without what it quotes."""
    try:
        conninfo.conninfo_to_dict(url)
    except ProgrammingError as error:
        return _QUOTED.sub("…", " ".join(str(error).split()).rstrip("."))
    return None


def _parts(url: str) -> dict[str, str] | None:
    try:
        found = conninfo.conninfo_to_dict(url)
    except ProgrammingError:
        return None
    return {name: str(value) for name, value in found.items() if value is not None}


def _place(parts: dict[str, str] | None) -> str:
    if parts is None:
        return _UNREADABLE
    hosts = (parts.get("host") or parts.get("hostaddr") or _DEFAULT_HOST).split(",")
    ports = (parts.get("port") or _DEFAULT_PORT).split(",")
    if len(ports) != len(hosts):
        ports = ports[:1] * len(hosts)
    servers = (f"{_host(host)}:{port or _DEFAULT_PORT}" for host, port in zip(hosts, ports, strict=True))
    return f"{','.join(servers)}/{parts.get('dbname', '')}"


def _host(host: str) -> str:
    is_ipv6 = ":" in host and not host.startswith("/")
    return f"[{host}]" if is_ipv6 else host or _DEFAULT_HOST
