"""Services that are told that a partition is done, and how they answer."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import lakelib
from lakelib import RetryableError, Table

DAY = {"dt": "2026-11-18"}
SUCCESS = b'{"result": "SUCCESS"}'


@dataclass
class Service:
    """A real HTTP server. It gives the answers in turn, the last one again and again."""

    url: str = ""
    answers: list[tuple[int, bytes]] = field(default_factory=lambda: [(200, SUCCESS)])
    headers: dict[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    heard: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"] or 0))
        request = {"method": handler.command, "path": handler.path, "type": handler.headers["Content-Type"]}
        self.heard.append(request | {"body": json.loads(body) if body else None})
        status, content = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        time.sleep(self.delay_seconds)
        if status == 0:
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        handler.send_response(status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            service.answer(self)

        do_GET = do_POST  # noqa: N815 - the server looks for this name

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        service.url = f"http://127.0.0.1:{server.server_port}/done"
        yield service
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def table(module_catalog_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    with lakelib.connect(warehouse=tmp_path_factory.mktemp("lake"), catalog=module_catalog_url) as lake:
        lake.create_namespace("shop")
        yield lake.create_table("shop.orders", "id BIGINT, dt DATE", primary_key=["id"], partition_by=["dt"])


Report = Callable[..., Any]


def report(table: Table, service: Service, **more: Any) -> Any:
    return table.mark_done(DAY, [{"http_report": {"url": service.url, **more}}])


def test_a_service_is_told_table_path_and_partition(table: Table, service: Service) -> None:
    report(table, service, params={"team": "shop", "limits": [1, None]})
    (heard,) = service.heard
    assert heard == {
        "method": "POST",
        "path": "/done",
        "type": "application/json",
        "body": {
            "params": {"team": "shop", "limits": [1, None]},
            "table": "shop.orders",
            "path": f"{table.location}/dt=2026-11-18",
            "partition": "dt=2026-11-18",
        },
    }


@pytest.mark.parametrize("first", [(503, b"busy"), (0, b"")])
def test_a_service_that_fails_for_a_moment_is_told_again(
    table: Table, service: Service, first: tuple[int, bytes]
) -> None:
    service.answers = [first, (200, SUCCESS)]
    report(table, service)
    assert len(service.heard) == 2


@pytest.mark.parametrize(
    ("answer", "told", "named"),
    [
        ((503, b""), 3, "status 503"),
        ((404, b""), 1, "status 404"),
        ((200, b'{"result": "FAILED"}'), 1, "FAILED"),
        ((200, b"<html>"), 1, "<html>"),
        ((200, b"[1]"), 1, "[1]"),
        ((200, b""), 1, "''"),
        ((200, b"\xff\xfe"), 1, "answered"),
        ((200, b" " * 70_000 + SUCCESS), 1, "answered"),
    ],
)
def test_a_service_that_does_not_say_success_fails_the_action_and_not_the_mark(
    table: Table, service: Service, answer: tuple[int, bytes], told: int, named: str
) -> None:
    service.answers = [answer]
    with pytest.raises(RetryableError) as caught:
        report(table, service)
    assert named in str(caught.value)
    assert service.url in str(caught.value)
    assert len(str(caught.value)) < 600
    assert caught.value.remedy
    assert len(service.heard) == told
    assert table.is_done(DAY)


def test_a_token_is_in_no_message(table: Table, service: Service) -> None:
    service.answers = [(404, b"")]
    given: list[dict[str, Any]] = [
        {"http_report": {"url": f"{service.url}?token=hunter2#hunter2", "params": {"token": "hunter2"}}},
        {"http_report": {"url": service.url, "params": {"token": "hunter2"}, "timeout_seconds": "long"}},
        {"http_report": {"url": "http://ann:hunter2/x@host/", "params": {}}},
        {"http_report": {"url": "ftp://host/?token=hunter2"}},
        {"http_reports": {"url": service.url, "params": {"token": "hunter2"}}},
    ]
    for action in given:
        with pytest.raises(lakelib.LakeError) as caught:
            table.mark_done(DAY, [action])
        assert "hunter2" not in str(caught.value)


def test_a_redirect_is_not_followed(table: Table, service: Service) -> None:
    service.answers = [(302, b"")]
    service.headers = {"Location": service.url}
    with pytest.raises(RetryableError, match="status 302"):
        report(table, service)
    assert len(service.heard) == 1


def test_a_service_that_does_not_answer_in_time_is_given_up(table: Table, service: Service) -> None:
    service.delay_seconds = 0.5
    with pytest.raises(RetryableError, match="timed out"):
        report(table, service, timeout_seconds=0.05)


def test_a_service_that_is_not_there_is_an_error_to_retry(table: Table) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        with pytest.raises(RetryableError, match="refused"):
            table.mark_done(DAY, [{"http_report": {"url": url}}])


def test_a_proxy_of_the_environment_is_not_asked_for_what_runs_here(
    table: Table, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    report(table, service)
    assert len(service.heard) == 1


def test_a_proxy_of_the_environment_is_asked_for_other_hosts(
    table: Table, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", service.url.removesuffix("/done"))
    monkeypatch.delenv("no_proxy", raising=False)
    table.mark_done(DAY, [{"http_report": {"url": "http://metadata.invalid/x"}}])
    assert [heard["path"] for heard in service.heard] == ["http://metadata.invalid/x"]


def test_a_service_is_told_once_the_file_is_there(table: Table, service: Service) -> None:
    there: list[bool] = []
    file = Path(table.location.removeprefix("file://"), "dt=2026-11-18", "_SUCCESS")
    answer = service.answer
    service.answer = lambda handler: (there.append(file.exists()), answer(handler))[1]  # type: ignore[method-assign]
    table.mark_done(DAY, [{"http_report": {"url": service.url}}, "success_file"])
    assert there == [True]
