"""Runs functions in processes of their own, forked from a server that has imported everything: each starts at once.

The functions must be importable by name, for the processes look them up.
"""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from lakelib.errors import LakeError

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "pytest",
        "lakelib",
        "lakelib.gates.lint",
        "lakelib.gates.run",
        "pandas",  # which pyarrow loads for the first value that it is given
        "pyarrow.pandas_compat",
        "tests.integration.faults.crash",
        "tests.integration.faults.jobs",
    ]
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a process ended: with a result, with an error, or killed (then `messages` tell how far it came)."""

    result: Any = None
    error: str = ""
    error_kind: str = ""
    exit_code: int = 0
    messages: tuple[Any, ...] = ()


Say = Callable[[Any], None]


class Worker:
    """A running process. `say` inside it sends a message; what it returns is its result."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self._received, sending = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=_run, args=(sending, function, tuple(arguments)), daemon=True)
        self._process.start()
        sending.close()

    def outcome(self, timeout_seconds: float) -> Outcome:
        """Waits for its end. A process that takes too long is ended, and is an error."""
        deadline = time.monotonic() + timeout_seconds
        messages: list[Any] = []
        ended = None
        while ended is None and wait([self._received], max(0.0, deadline - time.monotonic())):
            try:
                what, content = self._received.recv()
            except EOFError:
                break
            if what == "said":
                messages.append(content)
            else:
                ended = Outcome(**content, messages=tuple(messages))
        self._process.join(max(0.1, deadline - time.monotonic()))
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
            return Outcome(error="the process took too long", messages=tuple(messages))
        self._received.close()
        return ended or Outcome(exit_code=self._process.exitcode or 0, messages=tuple(messages))

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        """Ends it as a crash does, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._received.close()


def run_process(function: Callable[..., Any], *arguments: Any, timeout_seconds: float = 60) -> Outcome:
    return Worker(function, arguments).outcome(timeout_seconds)


def run_together(
    function: Callable[..., Any], arguments: Sequence[Sequence[Any]], *, timeout_seconds: float = 120
) -> list[Outcome]:
    """One process for each tuple of arguments, all at the same time."""
    deadline = time.monotonic() + timeout_seconds
    workers = [Worker(function, each) for each in arguments]
    return [worker.outcome(max(0.1, deadline - time.monotonic())) for worker in workers]


def results(outcomes: Sequence[Outcome]) -> list[Any]:
    """What the processes returned; fails if one did not."""
    failed = [f"{each.error_kind} {each.error} {each.exit_code}" for each in outcomes if each.error or each.exit_code]
    assert not failed, f"{len(failed)} of {len(outcomes)} processes failed: {failed[:3]}"
    return [each.result for each in outcomes]


def _run(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        ended = {"result": function(lambda message: pipe.send(("said", message)), *arguments)}
    except LakeError as error:
        ended = {"error": f"{type(error).__name__}: {error}", "error_kind": error.kind}
    except Exception as error:
        ended = {"error": f"{type(error).__name__}: {error}", "error_kind": "not a LakeError"}
    pipe.send(("ended", ended))
    pipe.close()
