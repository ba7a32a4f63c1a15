"""Of the catalog's address messages show host, port, database and user, whatever is wrong with it."""

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import lakelib
from jobs import maintain
from lakelib.catalog.address import check_address
from lakelib.catalog.connect import Catalog
from lakelib.cli.main import main
from lakelib.settings import Settings, load_settings
from tests.conftest import drop_database
from tests.integration.catalog.guarded import guarded

HEAD, TAIL = "hunter", "swordfish"
"""Between them stands what makes a password hard to read. Neither may be seen."""

NASTY = [
    "/",
    "?",
    "@",
    ":",
    "%",
    "%zz",
    " ",
    "#",
    "&",
    "=",
    ",",
    "[",
    "]",
    "::",
    "/x?y=",
    "?host=x&",
    "@h/db?",
    '"',
    "'",
    "\\",
    "é",
]
DIGITS = ["1/", "1?", "1@", "1:"]
"""What comes first looks like a port."""
PLACES = {
    "refused": "127.0.0.1:1/lake",
    "two that refuse": "127.0.0.1:1,localhost:2/lake",
    "IPv6": "[::1]:1/lake",
    "no port": "127.0.0.1:port/lake",
    "no such folder": "/lake?host=/no/such/folder",
}


def seen(error: BaseException) -> str:
    """All that anybody may print of an error, and of those that led to it."""
    told = "".join(traceback.format_exception(error)) + repr(error)
    for before in (error.__cause__, error.__context__):
        told += "" if before is None else seen(before)
    return told


def said_of(url: str, caplog: pytest.LogCaptureFixture) -> str:
    """What is told and logged of a catalog that cannot be reached."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(lakelib.LakeError) as caught:
        ask_once(url)
    return seen(caught.value) + caplog.text


def ask_once(url: str) -> None:
    settings = Settings(catalog=url) if "://" not in url else load_settings(catalog=url, environ={})
    catalog = Catalog(str(settings.catalog), patience_seconds=0)
    check(f"{catalog!r} {settings!r}")
    check_address(catalog.url)
    catalog.run(lambda db: db.execute("select 1"))


def check(told: str) -> None:
    assert HEAD not in told
    assert TAIL not in told


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_a_password_is_in_no_message(place: str, caplog: pytest.LogCaptureFixture) -> None:
    hosts, _, rest = place.partition("?")
    more = f"&{rest}" if rest else ""
    for sign in NASTY:
        password = f"{HEAD}{sign}{TAIL}"
        escaped = quote(password, safe="")
        for url in (
            f"postgresql://ann:{password}@{place}",
            f"postgresql://ann:{escaped}@{place}",
            f"postgresql://ann@{hosts}?sslpassword={escaped}&password={escaped}{more}",
            f"postgresql://ann@{hosts}?sslpassword={password}&passfile=/{password}{more}",
            f"jdbc:postgresql://{hosts}?user=ann&password={password}{more}",
        ):
            check(said_of(url, caplog))


@pytest.mark.parametrize("sign", ["@", "/", "?"])
def test_a_password_is_not_taken_for_a_host(sign: str, caplog: pytest.LogCaptureFixture) -> None:
    check(said_of(f"postgresql://ann:{HEAD}{sign}{TAIL}@nowhere.invalid/lake", caplog))


@pytest.mark.parametrize("start", DIGITS)
def test_what_looks_like_a_port_is_none(start: str, caplog: pytest.LogCaptureFixture) -> None:
    check(said_of(f"postgresql://ann:{start}{TAIL}@127.0.0.1:1/lake", caplog))


def test_a_password_is_in_no_message_about_text_of_names_and_values(caplog: pytest.LogCaptureFixture) -> None:
    for sign in NASTY:
        quoted = f"{HEAD}{sign}{TAIL}".replace("\\", "\\\\").replace("'", "\\'")
        for text in (
            f"host=127.0.0.1 port=1 user=ann password='{quoted}' sslpassword='{quoted}'",
            f"host=127.0.0.1 port=1 password={HEAD}{sign}{TAIL}",
            f"host=127.0.0.1 port=1 passwrd='{quoted}'",
            f"host=127.0.0.1 password='{quoted}",
        ):
            check(said_of(text, caplog))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:x@127.0.0.1:1/lake?sslpassword=y", "127.0.0.1:1/lake"),
        ("postgresql://ann:x@127.0.0.1:1,127.0.0.1:2/lake", "127.0.0.1:1,127.0.0.1:2/lake"),
        ("postgresql://ann:x@[::1]:1/lake", "[::1]:1/lake"),
        ("postgresql://ann@/lake?host=/no/such/folder", "/no/such/folder:5432/lake"),
    ],
)
def test_host_port_and_database_are_named(url: str, shown: str, caplog: pytest.LogCaptureFixture) -> None:
    assert f"PostgreSQL at {shown}" in said_of(url, caplog)


@pytest.fixture(scope="module")
def guarded_url(make_database: Callable[[], str]) -> Iterator[str]:
    """A database that wants a password of the role `guarded`."""
    url = make_database()
    with guarded(url):
        yield url
    drop_database(url)


@pytest.mark.parametrize("sign", NASTY)
def test_a_wrong_password_is_in_no_message(sign: str, guarded_url: str, caplog: pytest.LogCaptureFixture) -> None:
    password = quote(f"{HEAD}{sign}{TAIL}", safe="")
    told = said_of(f"{guarded_url.replace('postgres:@', f'guarded:{password}@')}&sslpassword={password}", caplog)

    check(told)
    assert "as guarded refused the connection" in told


@pytest.mark.parametrize(
    "work",
    [
        lambda db: db.execute("select * from nothing.nothing"),
        lambda db: db.execute(f"select {' + '.join(['%s'] * 70_000)}".encode(), [1] * 70_000),
        lambda db: db.execute("select pg_terminate_backend(pg_backend_pid())"),
    ],
    ids=["refused", "misused", "lost"],
)
def test_a_statement_that_fails_tells_no_password(
    work: Any, catalog_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = quote(f"{HEAD}/{TAIL}", safe="")
    catalog = Catalog(f"{catalog_url}&sslpassword={secret}&password={secret}", patience_seconds=0)
    catalog.run(lambda db: db.execute("select 1"))
    with pytest.raises(lakelib.LakeError) as caught:
        catalog.run(work)
    catalog.close()

    check(seen(caught.value) + caplog.text)
    assert "as postgres" in str(caught.value)


def _no_database(url: str) -> str:
    name = url.partition("?")[0].rpartition("/")[2]
    secret = quote(f"{HEAD}/{TAIL}", safe="")
    return url.replace(f"/{name}?", f"/no_such?sslpassword={secret}&password={secret}&")


@pytest.mark.parametrize("more", [[], ["--json"], ["--debug"]])
def test_a_command_tells_no_password(
    more: list[str], catalog_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for url in (_no_database(catalog_url), f"postgresql://ann:{HEAD}/{TAIL}@127.0.0.1:1/lake"):
        assert main(["tables", "--catalog", url, "--warehouse", str(tmp_path), *more]) == 3
        told = "".join(capsys.readouterr())
        check(told)
        assert "catalog" in told


def test_a_job_tells_no_password(catalog_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = tmp_path / "result.json"
    for url in (_no_database(catalog_url), f"postgresql://ann:{HEAD}/{TAIL}@127.0.0.1:1/lake"):
        place = ["--catalog", url, "--warehouse", str(tmp_path), "--result", str(result)]
        assert maintain.main(["--all", "--expire", *place]) == 3
        check(result.read_text() + "".join(capsys.readouterr()))
        assert json.loads(result.read_text())["error"]["message"]


def test_a_lake_tells_no_password(lake: lakelib.Lake, catalog_url: str, tmp_path: Path) -> None:
    secret = f"{HEAD}/{TAIL}"
    with lakelib.connect(
        warehouse=str(tmp_path / "other"),
        catalog=catalog_url.replace("postgres:@", f"postgres:{quote(secret, safe='')}@"),
        s3_access_key=f"{HEAD}-access",
        s3_secret_key=secret,
        s3_session_token=secret,
    ) as other:
        table = other.create_table("shop.orders", "id BIGINT")
        things: list[Any] = [other, other.settings, other.runtime, other.runtime.storage, other.runtime.catalog, table]
        check(" ".join(f"{thing!r} {thing}" for thing in things))
