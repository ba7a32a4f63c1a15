"""Fixtures of the catalog's tests: a migrated database, and a lake on it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import lakelib
from lakelib.catalog.connect import Catalog
from lakelib.catalog.migrate import migrate
from tests.catalogs import Catalogs
from tests.conftest import drop_database
from tests.integration.catalog.town import Town, open_town


@pytest.fixture
def catalog_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database for one test, or a migrated one where it has a lake on it."""
    if "lake" in request.fixturenames and "catalog" not in request.fixturenames:
        catalogs: Catalogs = request.getfixturevalue("catalogs")
        with catalogs.lent() as url:
            yield url
    else:
        url = request.getfixturevalue("make_database")()
        yield url
        drop_database(url)


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    opened = Catalog(catalog_url, patience_seconds=2)
    migrate(opened)
    yield opened
    opened.close()


@pytest.fixture
def lake(catalog_url: str, tmp_path: Path) -> Iterator[lakelib.Lake]:
    with lakelib.connect(warehouse=str(tmp_path / "warehouse"), catalog=catalog_url) as lake:
        lake.create_namespace("shop")
        yield lake


@pytest.fixture
def connection(catalog_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A look at the database from outside. Every statement is a transaction."""
    with psycopg.connect(catalog_url, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def town(make_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A catalog with a user for each role."""
    with open_town(make_database, tmp_path_factory.mktemp("town")) as town:
        yield town
