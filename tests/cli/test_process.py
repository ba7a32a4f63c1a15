"""The command as a process: it ends at once, and leaves nothing undone."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

_PROGRAM = """
import atexit, sys, threading, time
import lakelib.cli.main
from lakelib.cli.__main__ import run

class Kept:
    def __del__(self):
        print("taken apart")

kept = Kept()

def work():
    time.sleep(0.2)
    print("a thread's work")

def main():
    atexit.register(print, "tidied up")
    threading.Thread(target=work).start()
    sys.stdout.write("told ")
    {ends}

lakelib.cli.main.main = main
run()
"""


@pytest.mark.parametrize(
    ("ends", "code", "told"),
    [
        ("return 0", 0, "told a thread's work\ntidied up\n"),
        ("return 7", 7, "told a thread's work\ntidied up\n"),
        ("raise ValueError('a mistake')", 1, "told a thread's work\ntidied up\ntaken apart\n"),
    ],
)
def test_what_is_to_be_done_at_the_end_is_done_before_the_process_goes(
    ends: str, code: int, told: str, tmp_path: Path
) -> None:
    with open(tmp_path / "told", "w") as file:
        program = [sys.executable, "-c", _PROGRAM.format(ends=ends)]
        ended = subprocess.run(program, stdout=file, stderr=subprocess.PIPE, text=True, check=False)

    assert (ended.returncode, (tmp_path / "told").read_text()) == (code, told), ended.stderr
    assert ended.stderr == "" if code != 1 else "a mistake" in ended.stderr


def test_what_cannot_be_written_at_the_end_is_told() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        program = [sys.executable, "-c", _PROGRAM.format(ends="return 0")]
        ended = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=buffered)

    assert ended.returncode == 120
    assert "No space left on device" in ended.stderr


_NOT_OF_A_LAKE = {
    "help": (["--help"], {}),
    "no words": ([], {}),
    "help of a command": (["scan", "--help"], {}),
    "version": (["--version"], {}),
    "completion": ([], {"_LAKE_COMPLETE": "complete_bash", "COMP_WORDS": "lake sc", "COMP_CWORD": "1"}),
    "script for completion": ([], {"_LAKE_COMPLETE": "source_bash"}),
}
"""Words, and the environment, of what is told without a look at a lake."""


def _told_to(stdout: int | IO[str], name: str, buffering: dict[str, str]) -> tuple[int, str]:
    """Exit code and stderr."""
    words, own = _NOT_OF_A_LAKE[name]
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    ended = subprocess.run(
        [sys.executable, "-m", "lakelib.cli", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=kept | own | buffering,
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("buffering", [{}, {"PYTHONUNBUFFERED": "1"}])
@pytest.mark.parametrize("name", list(_NOT_OF_A_LAKE))
def test_help_that_cannot_be_written_is_told_in_a_line(name: str, buffering: dict[str, str]) -> None:
    with open("/dev/full", "w") as full:
        assert _told_to(full, name, buffering) == (1, "error: OSError: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("buffering", [{}, {"PYTHONUNBUFFERED": "1"}])
@pytest.mark.parametrize("name", list(_NOT_OF_A_LAKE))
def test_who_has_seen_enough_of_help_is_told_nothing(name: str, buffering: dict[str, str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert _told_to(writer, name, buffering) == (141, "")
    finally:
        os.close(writer)


@pytest.mark.parametrize("stderr", ["/dev/full", "&-"])
def test_words_that_nobody_can_read_do_not_change_how_the_command_ends(stderr: str) -> None:
    said = 'sys.stderr.write("a note\\n" * 9999); return 4'
    program = [sys.executable, "-c", _PROGRAM.format(ends=said)]
    ended = subprocess.run(["/bin/sh", "-c", f'exec "$@" 2>{stderr}', "sh", *program], capture_output=True, check=False)

    assert (ended.returncode, ended.stdout) == (4, b"told a thread's work\ntidied up\n")


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_stream_leads_nowhere_and_never_to_a_file(closed: int, tmp_path: Path) -> None:
    file = tmp_path / "rows"
    opened = f"import os; file = os.open({str(file)!r}, os.O_CREAT | os.O_WRONLY); sys.stdin.read()"
    child = "os.system('echo word; echo word >&2'); return file < 3"
    program = [sys.executable, "-c", _PROGRAM.format(ends=f"{opened}; {child}")]
    ended = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}>&-', "sh", *program], stdin=subprocess.DEVNULL, check=False
    )

    assert (ended.returncode, file.read_bytes()) == (0, b"")
