"""A network between a client and PostgreSQL that loses what it is told to lose: it takes bytes and forwards nothing."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import quote

from psycopg import conninfo

_PROTOCOL = b"\0\3\0\0"
_REFUSED = b"SFATAL\0C08P01\0Munsupported startup parameter in options: lock_timeout\0\0"
_REFUSAL = b"E" + (len(_REFUSED) + 4).to_bytes(4, "big") + _REFUSED


@dataclass(slots=True)
class Network:
    """`url` leads through it. What was lost on a connection stays lost: `heal` helps later connections."""

    url: str
    loses_requests: bool = False
    loses_replies: bool = False
    round_trips: int = 0
    """How many times a client has said something after it had heard something."""
    _moment: bytes | None = None
    _requests_left: int | None = None
    _request_arrives: bool = True
    _refuses_settings: bool = False
    _broken: set[int] = field(default_factory=set)

    def lose(self, *, requests: bool = True, replies: bool = True) -> None:
        """From now on."""
        self.loses_requests, self.loses_replies = requests, replies

    def lose_at(self, statement: bytes, *, request_arrives: bool) -> None:
        """From the moment on at which a client says this; whether the server still hears it."""
        self._moment, self._request_arrives = statement, request_arrives

    def lose_after(self, requests: int) -> None:
        """From the reply on to that many requests."""
        self._requests_left = requests

    def refuse_settings(self) -> None:
        """As a pooler does that passes on none of what a client wants to be set for its session."""
        self._refuses_settings = True

    def heal(self) -> None:
        self.loses_requests = self.loses_replies = False
        self._moment = self._requests_left = None

    def _hears(self, number: int, said: bytes) -> bool:
        """Whether the server does."""
        if self._requests_left is not None:
            self._requests_left -= 1
            if self._requests_left == 0:
                self._moment, self._request_arrives = said, True
        if self._moment is not None and self._moment in said:
            self._moment = None
            self.loses_requests = self.loses_replies = True
            self._broken.add(number)
            return self._request_arrives
        if self.loses_requests:
            self._broken.add(number)
        return number not in self._broken

    def _tells(self, number: int) -> bool:
        """Whether the client hears the reply."""
        if self.loses_replies:
            self._broken.add(number)
        return number not in self._broken

    def _carry_requests(self, number: int, client: socket.socket, server: socket.socket) -> None:
        for said in _chunks(client):
            self.round_trips += 1
            if self._refuses_settings and said[4:8] == _PROTOCOL and b"\0options\0" in said:
                _send(client, _REFUSAL)
                break
            if self._hears(number, said):
                _send(server, said)
        if number not in self._broken:
            _shut(server)

    def _carry_replies(self, number: int, client: socket.socket, server: socket.socket) -> None:
        for said in _chunks(server):
            if self._tells(number):
                _send(client, said)
        if number not in self._broken:
            _shut(client)


@contextmanager
def network(url: str) -> Iterator[Network]:
    """A network before the server of the URL, which listens on a socket in a folder."""
    folder = str(conninfo.conninfo_to_dict(url)["host"])
    listener = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = [listener]
    made = Network(_through(url, listener.getsockname()[1]))

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server = socket.socket(socket.AF_UNIX)
                server.connect(f"{folder}/.s.PGSQL.5432")
                opened.extend((client, server))
                for carry in (made._carry_requests, made._carry_replies):
                    threading.Thread(target=carry, args=(len(opened), client, server), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield made
    finally:
        for each in opened:
            _shut(each)
            each.close()


def _through(url: str, port: int) -> str:
    name = re.search(r"/([^/?]*)\?", url.partition("://")[2])
    assert name is not None
    return f"postgresql://postgres@127.0.0.1:{port}/{quote(name[1])}?sslmode=disable"


def _chunks(source: socket.socket) -> Iterator[bytes]:
    with suppress(OSError):
        while said := source.recv(1 << 16):
            yield said


def _send(end: socket.socket, said: bytes) -> None:
    with suppress(OSError):
        end.sendall(said)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
