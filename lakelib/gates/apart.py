"""Has texts tested by Python in a process of its own, which is ended when a check takes too long."""

import os
import pickle
import select
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lakelib.errors import LakeError

_LENGTH = struct.Struct("<Q")
_WORKER = Path(__file__).with_name("apart_worker.py")
_CHUNK_BYTES = 2**20


class CheckError(LakeError):
    """A check cannot be carried out: nothing is said of the rows."""


class Apart:
    """The process, which is there from the first test on. Closing it ends it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def test(self, kind: str, argument: Any, texts: Sequence[str], seconds: float) -> bytes:
        """For each text 1 if it passes and 0 if it does not. Raises CheckError for what is wrong with the argument or a
        text, and if it takes longer than so many seconds."""
        if seconds <= 0:
            raise self._too_long()
        process = self._process = self._process or _start()
        request = pickle.dumps((kind, argument, list(texts), seconds))
        ends_at = time.monotonic() + seconds
        try:
            _send(process, _LENGTH.pack(len(request)) + request, ends_at)
            (length,) = _LENGTH.unpack(_receive(process, _LENGTH.size, ends_at))
            answer: bytes | str = pickle.loads(_receive(process, length, ends_at))
        except TimeoutError:
            raise self._too_long() from None
        except (EOFError, BrokenPipeError):
            self.close()
            raise CheckError("The process that carries the check out has ended.", kind="check_ended") from None
        if isinstance(answer, str):
            raise CheckError(answer, kind="check_errored")
        return answer

    def _too_long(self) -> CheckError:
        self.close()
        return CheckError("It took longer than it may.", kind="check_timeout")

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _start() -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-P", str(_WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)
    return process


def _send(process: "subprocess.Popen[bytes]", content: bytes, ends_at: float) -> None:
    assert process.stdin is not None
    left = memoryview(content)
    while left:
        _wait([], [process.stdin], ends_at)
        left = left[process.stdin.write(left[:_CHUNK_BYTES]) or 0 :]


def _receive(process: "subprocess.Popen[bytes]", size: int, ends_at: float) -> bytes:
    assert process.stdout is not None
    found = bytearray()
    while len(found) < size:
        _wait([process.stdout], [], ends_at)
        piece = os.read(process.stdout.fileno(), min(size - len(found), _CHUNK_BYTES))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def _wait(readers: list[Any], writers: list[Any], ends_at: float) -> None:
    poll = select.poll()
    for each in readers:
        poll.register(each, select.POLLIN)
    for each in writers:
        poll.register(each, select.POLLOUT)
    if not poll.poll(max(0.0, ends_at - time.monotonic()) * 1000):
        raise TimeoutError
