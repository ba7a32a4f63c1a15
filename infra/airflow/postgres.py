"""The embedded PostgreSQL of an instance: the one that `lakelib.connect()` takes where nothing is set, kept running.

The server stops with the last process that uses it (docs/decisions/0012). The parts of Airflow reach it by its URL,
which does not count as using it, so they inherit what does. Airflow's own tables are in a database beside the catalog.
Neither Airflow nor its tasks own the lake (docs/decisions/0033): the superuser does, as who the keeper and people come.
"""

import time
from pathlib import Path
from typing import Any

import psycopg

import lakelib
from infra.compose.make_roles import make_roles
from lakelib.catalog import embedded, postgresql
from lakelib.catalog.embedded import EmbeddedServer

AIRFLOW_DATABASE = "airflow"
AIRFLOW_USER = "airflow"
JOBS_USER = "lake_jobs"
_OWNER = "//postgres:@/"
SERVER = "postgresql"
_RELEASE_SECONDS = 5.0
_POLL_SECONDS = 0.1


def start_server(folder: Path) -> EmbeddedServer:
    """The server on the folder, running, with Airflow's database in it. It stays until `release_server`."""
    server = EmbeddedServer(folder)
    with psycopg.connect(server.url, autocommit=True) as connection:
        if not _exists(connection, AIRFLOW_DATABASE):
            connection.execute(f"CREATE DATABASE {AIRFLOW_DATABASE}")
    return server


def is_ready(folder: Path) -> bool:
    """Whether a server runs on the folder and answers."""
    return embedded.is_answering(folder)


def release_server(folder: Path) -> bool:
    """Stops the server unless others use it. Returns whether none runs.

    Threads of a process that has been ended may use it for a moment longer.
    """
    deadline = time.monotonic() + _RELEASE_SECONDS
    while not embedded.release(folder) and is_ready(folder):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def restart_server(folder: Path, *, mode: str) -> None:
    """Stops the server, fast or immediate as pg_ctl calls it, and starts it again."""
    stop_server(folder, mode=mode)
    EmbeddedServer(folder)


def stop_server(folder: Path, *, mode: str = "immediate") -> None:
    """Ends the server, whoever uses it."""
    embedded.stop(folder, mode=mode)


def prepare_databases(server: EmbeddedServer, warehouse: str) -> None:
    """Brings the lake's catalog up to date, and makes the users who do not own it: Airflow, whose database is its
    own, and its tasks."""
    lakelib.migrate(warehouse, owner_url(server))
    make_roles(owner_url(server), _airflow_url(server), jobs_url(server), warehouse=warehouse)


def owner_url(server: EmbeddedServer) -> str:
    """Of lakelib's catalog, for who may do everything: that of an embedded catalog."""
    return server.url


def jobs_url(server: EmbeddedServer) -> str:
    """Of lakelib's catalog, for Airflow's tasks."""
    return server.url.replace(_OWNER, f"//{JOBS_USER}:@/", 1)


def airflow_url(server: EmbeddedServer) -> str:
    """Of Airflow's database, as SQLAlchemy writes it."""
    return _airflow_url(server).replace("postgresql:", "postgresql+psycopg:", 1)


def _airflow_url(server: EmbeddedServer) -> str:
    as_airflow = server.url.replace(_OWNER, f"//{AIRFLOW_USER}:@/", 1)
    return as_airflow.replace("/postgres?", f"/{AIRFLOW_DATABASE}?", 1)


def migrated_by(server: EmbeddedServer) -> str | None:
    """The version of Airflow that brought its database up to date last."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [AIRFLOW_DATABASE]
        ).fetchone()
    return found[0] if found else None


def set_migrated_by(server: EmbeddedServer, version: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("COMMENT ON DATABASE airflow IS {}").format(psycopg.sql.Literal(version)))


def _exists(connection: psycopg.Connection[Any], database: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone())


def url_of_running(folder: Path) -> str | None:
    """The catalog's URL for its owner, if a server runs on the folder."""
    return embedded.url_of(folder) if is_ready(folder) else None


def has_data(folder: Path) -> bool:
    """Whether there is a server's data, running or not."""
    return postgresql.has_data(folder)
