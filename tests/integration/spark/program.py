"""Scripts that run beside the tests, in processes of their own: a test orders a job, the script answers with a file."""

import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from infra.spark.standalone import die_with_parent, spark_environment

_ANSWER_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Program:
    """A running script."""

    process: subprocess.Popen[bytes]
    folder: Path
    numbers: Iterator[int] = field(default_factory=count)

    def order(self, job: str, **given: Any) -> "Answer":
        """The script begins with the job once it has done all that it was told before."""
        result = self.folder / f"{next(self.numbers)}.answer"
        line = json.dumps({"job": job, "given": given, "result": str(result)})
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return Answer(program=self, result=result)

    def check_alive(self) -> None:
        assert self.process.poll() is None, (self.folder / "log").read_text(errors="replace")[-6000:]


@dataclass(frozen=True, kw_only=True)
class Answer:
    program: Program
    result: Path

    def read(self) -> bytes:
        """Waits for it. Raises what the script has raised, as text."""
        failed = self.result.with_suffix(".error")
        wait_until(lambda: self.result.exists() or failed.exists(), "the job ends", self.program, _ANSWER_SECONDS)
        assert not failed.exists(), failed.read_text()[-6000:]
        return self.result.read_bytes()


@contextmanager
def started_program(script: Path, settings: Mapping[str, Any], folder: Path) -> Iterator[Program]:
    """A script that calls `serve`; it ends with the block, and a JVM that it has started ends with it."""
    folder.mkdir(exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), json.dumps(settings)],
            env=spark_environment(),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
    with process:
        try:
            yield Program(process=process, folder=folder)
        finally:
            process.kill()


def wait_until(met: Callable[[], bool], what: str, program: Program, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        program.check_alive()
        assert time.monotonic() < deadline, f"it does not come to pass that {what}"
        time.sleep(0.02)


# In the script


def serve(jobs: Mapping[str, Callable[[dict[str, Any]], bytes]]) -> None:
    """Does what is ordered, until nothing more can be."""
    for line in sys.stdin:
        order = json.loads(line)
        result = Path(order["result"])
        try:
            _put(result, jobs[order["job"]](order["given"]))
        except Exception:
            _put(result.with_suffix(".error"), traceback.format_exc().encode())


def _put(place: Path, content: bytes) -> None:
    """At once: the test looks for the file."""
    unfinished = place.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    unfinished.rename(place)
