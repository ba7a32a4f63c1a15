"""A store that does not answer, or stops in the middle: the call ends in time. A store that is slow is waited for."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from lakelib.errors import RetryableError
from lakelib.settings import StorageSettings
from lakelib.storage import s3
from lakelib.storage.filesystem import Storage, open_storage

_TIMEOUT_SECONDS = 4.0
_BOUND_SECONDS = 30.0
_CONTENT = b"slowly" * 5

Behaviour = Callable[[socket.socket, bytes], None]

_CALLS: dict[str, Callable[[Storage], Any]] = {
    "read": lambda storage: storage.read_bytes("file"),
    "size": lambda storage: storage.size("file"),
    "write": lambda storage: storage.write_bytes("file", b"1"),
    "upload": lambda storage: storage.write_bytes("file", b"1" * 12_000_000),
    "list": lambda storage: list(storage.list_files()),
    "delete": lambda storage: storage.delete_files(["file"]),
    "abort": lambda storage: storage.abort_uploads("", datetime.now(UTC), dry_run=True),
}


def _say_nothing(client: socket.socket, request: bytes) -> None:
    _drain(client)


def _stop_in_the_body(client: socket.socket, request: bytes) -> None:
    if not request.startswith(b"HEAD"):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/xml\r\n\r\n<")
    _drain(client)


def _reset(client: socket.socket, request: bytes) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def _drip(client: socket.socket, request: bytes) -> None:
    modified = b"Last-Modified: Wed, 18 Nov 2026 07:28:00 GMT\r\n"
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n" % (len(_CONTENT), modified))
    for byte in _CONTENT if request.startswith(b"GET") else b"":
        client.sendall(bytes([byte]))
        time.sleep(0.1)


def _drain(client: socket.socket) -> None:
    while client.recv(1 << 16):
        pass


@contextmanager
def store(behave: Behaviour) -> Iterator[Storage]:
    """A storage whose service takes each request and then behaves so."""
    listener = socket.create_server(("127.0.0.1", 0))
    clients: list[socket.socket] = []

    def serve(client: socket.socket) -> None:
        with suppress(OSError), client:
            behave(client, client.recv(1 << 16))

    def accept() -> None:
        with suppress(OSError):
            while True:
                clients.append(listener.accept()[0])
                threading.Thread(target=serve, args=(clients[-1],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    settings = StorageSettings(
        s3_endpoint=f"http://127.0.0.1:{listener.getsockname()[1]}",
        s3_access_key="key",
        s3_secret_key="secret",
        s3_timeout_seconds=_TIMEOUT_SECONDS,
    )
    try:
        yield open_storage("s3://lake/x", settings)
    finally:
        for each in (listener, *clients):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def failure(call: Callable[[Storage], Any], storage: Storage) -> tuple[str, float]:
    """Kind of the error, and how long it took."""
    began = time.monotonic()
    with pytest.raises(RetryableError) as caught:
        call(storage)
    return caught.value.kind, time.monotonic() - began


@pytest.mark.parametrize("behave", [_say_nothing, _stop_in_the_body, _reset])
def test_every_call_to_a_store_that_fails_it_ends_in_time(behave: Behaviour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "_ATTEMPTS", 1)
    with store(behave) as storage, ThreadPoolExecutor(len(_CALLS)) as threads:
        ended = dict(zip(_CALLS, threads.map(lambda call: failure(call, storage), _CALLS.values()), strict=True))

    assert {kind for kind, _ in ended.values()} == {"storage_unavailable"}
    assert max(seconds for _, seconds in ended.values()) < _BOUND_SECONDS


def test_a_store_that_drips_is_waited_for() -> None:
    """Longer than it may be silent."""
    with store(_drip) as storage:
        assert storage.read_bytes("file") == _CONTENT


def test_the_tries_of_a_request_fit_into_its_timeout() -> None:
    assert s3.silent_seconds(StorageSettings(s3_timeout_seconds=20)) * s3._ATTEMPTS < 20
    assert s3.silent_seconds(StorageSettings()) * s3._ATTEMPTS < 60
