"""An S3 service before another one: it takes conditional puts at their word, and fails as services do, at times when it
has done what was asked for."""

import http.client
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
_OF_A_HOP = {"connection", "expect", "transfer-encoding", "keep-alive"}


class Bucket(ThreadingHTTPServer):
    """`fails` is the folder in whose requests it fails, if it is to. `created` counts the puts that made each new
    object, by path."""

    daemon_threads = True

    def __init__(self, endpoint: str, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = urlsplit(endpoint)
        self.fails: str | None = None
        self.faults: Counter[str] = Counter()
        self.created: Counter[str] = Counter()
        self.conditions = threading.Lock()
        self._chance = random.Random(seed)
        self._chances = threading.Lock()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fault(self, method: str, path: str, *, conditional: bool) -> str | None:
        if self.fails is None or self.fails not in path:
            return None
        with self._chances:
            drawn = self._chance.random()
            found = None
            if drawn < 0.08:
                found = "refused"
            elif drawn < 0.24 and method == "PUT":
                found = "lost reply" if drawn < 0.16 else "done and failed"
            elif drawn < 0.3 and conditional:
                found = "conflict"
            if found is not None:
                self.faults[found] += 1
            return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bucket

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        conditional = self.headers.get("If-None-Match") == "*"
        fault = self.server.fault(self.command, self.path, conditional=conditional)
        if fault == "refused":
            self._fail(503, "SlowDown")
        elif fault == "conflict":
            self._fail(409, "ConditionalRequestConflict")
        else:
            reply = self._put_new(body) if conditional else self._ask(body)
            if reply is None:
                self._fail(412, "PreconditionFailed")
            elif fault == "lost reply":
                self.close_connection = True
            elif fault == "done and failed":
                self._fail(500, "InternalError")
            else:
                self._tell(reply)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815

    def _put_new(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes] | None:
        """None where there is such an object."""
        with self.server.conditions:
            if self.server.created[self.path]:
                return None
            reply = self._ask(body)
            self.server.created[self.path] += reply[0].status == 200
            return reply

    def _ask(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        """The service behind: the request is signed, and goes on as it came."""
        asked = http.client.HTTPConnection(str(self.server.behind.hostname), self.server.behind.port, timeout=30)
        asked.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.casefold() not in _OF_A_HOP:
                asked.putheader(name, value)
        asked.endheaders(body)
        reply = asked.getresponse()
        content = reply.read()
        asked.close()
        return reply, content

    def _tell(self, reply: tuple[http.client.HTTPResponse, bytes]) -> None:
        head, content = reply
        self.send_response_only(head.status)
        sized = self.command == "HEAD"
        for name, value in head.getheaders():
            if name.casefold() not in _OF_A_HOP and (sized or name.casefold() != "content-length"):
                self.send_header(name, value)
        if not sized:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _fail(self, status: int, code: str) -> None:
        content = b"" if self.command == "HEAD" else _ERROR.format(code=code).encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def bucket(endpoint: str, seed: int) -> Iterator[Bucket]:
    """A service before that of the endpoint."""
    service = Bucket(endpoint, seed)
    serving = threading.Thread(target=service.serve_forever, daemon=True)
    serving.start()
    try:
        yield service
    finally:
        service.shutdown()
        service.server_close()
        serving.join()
