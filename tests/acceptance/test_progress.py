"""What takes long says how far it is: on a terminal, and in a notebook's kernel. Logs see nothing of it."""

import os
import pty
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client import BlockingKernelClient, KernelManager

from lakelib import progress
from lakelib.catalog.embedded import is_answering

WORK = """
import lakelib, time
from lakelib import progress
progress._DELAY_SECONDS = progress._REDRAW_SECONDS = 0.0

def slowly(rows):
    import pyarrow as pa
    batch = pa.table({"k": list(range(rows))}).to_batches()[0]
    def batches():
        for _ in range(5):
            time.sleep(0.15)
            yield batch
    return pa.RecordBatchReader.from_batches(batch.schema, batches())

with lakelib.connect("lake") as lake:
    lake.create_namespace("n")
    table = lake.create_table("n.t", "k BIGINT")
    table.append(slowly(10))
    print("rows", table.scan().count())
"""


def on_terminal(folder: Path, variables: dict[str, str]) -> tuple[str, str]:
    """What the program writes to stdout, and to stderr, which is a terminal."""
    screen, stderr = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **variables}
    command = [sys.executable, "-c", WORK]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=stderr) as program:
        os.close(stderr)
        shown = b"".join(_read_all(screen))
        told, _ = program.communicate(timeout=60)
    assert program.returncode == 0, shown.decode()
    return told.decode(), shown.decode()


def _read_all(screen: int) -> Iterator[bytes]:
    while True:
        try:
            found = os.read(screen, 65536)
        except OSError:  # that nobody writes any more
            os.close(screen)
            return
        yield found


def test_a_terminal_shows_how_far_work_is_and_keeps_nothing_of_it(tmp_path: Path) -> None:
    told, shown = on_terminal(tmp_path, {})
    assert told == "rows 50\n"
    assert "Writing rows" in shown
    assert re.search(r"\b[1-5]0\b", shown), "rows, where nobody knows how many there will be"


def test_the_bar_can_be_switched_off(tmp_path: Path) -> None:
    assert on_terminal(tmp_path, {"LAKE_PROGRESS": "0"}) == ("rows 50\n", "")


def test_a_log_sees_nothing(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", WORK], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("rows 50\n", "")


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[BlockingKernelClient]:
    manager = KernelManager(transport="ipc", connection_file=str(tmp_path / "kernel.json"))
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.shutdown_wait_time = 60
    manager.start_kernel(cwd=str(tmp_path))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel()  # in order: a kernel that is killed leaves its server behind
        assert not is_answering(tmp_path / "lake" / ".catalog")


def test_a_notebook_shows_it_below_the_cell_and_takes_it_away(kernel: BlockingKernelClient) -> None:
    found: list[dict[str, Any]] = []
    ran = kernel.execute_interactive(textwrap.dedent(WORK), output_hook=found.append, timeout=60)
    assert ran["content"]["status"] == "ok"
    cells = [one["content"]["transient"]["display_id"] for one in found if one["msg_type"] == "display_data"]
    updates = [one["content"] for one in found if one["msg_type"] == "update_display_data"]
    shown = {cell: [one["data"] for one in updates if one["transient"]["display_id"] == cell] for cell in cells}
    assert any("Writing rows: 40" in data["text/plain"] for data in shown[cells[0]])
    assert all(data[-1] == {"text/plain": "", "text/html": ""} for data in shown.values())
    assert [one["content"]["text"] for one in found if one["msg_type"] == "stream"] == ["rows 50\n"]


def test_a_screen_that_fails_does_not_fail_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = threading.Event()

    class Broken:
        def __init__(self, what: str) -> None:
            """A terminal that is closed a moment later."""

        def draw(self, done: int, total: int | None) -> None:
            drawn.set()
            raise BrokenPipeError

        def clear(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(progress, "_watched", lambda: Broken)
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0.0)
    with progress.bar("Working", 2) as shown:
        assert drawn.wait(10)
        shown.advance(1)
        shown.advance(1)
