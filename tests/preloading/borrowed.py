"""A program of tests is a fork of a process that has loaded what it needs (tests/forking.py). This one stands in for
it: signals go on to it, it ends with this one, and this one ends as it has ended."""

import json
import os
import signal
import socket
import sys
from contextlib import suppress

ADDRESS = "LAKE_TEST_PROGRAMS"
_PROGRAMS = (
    "jobs.",
    "lakelib.cli",
    "pyspark.daemon pyspark.sql.",
    "pyspark.sql.connect.streaming.worker.",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "tests.integration.catalog.folder_job",
    "tests.spark_daemon",
)
"""What commands begin with. Not among them: the Python of tasks as it is deployed, which tests find below the JVM."""
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def is_borrowed(arguments: list[str]) -> bool:
    """Of arguments with `-m`. What has a terminal is no program of a test."""
    return " ".join(arguments[2:]).startswith(_PROGRAMS) and not any(map(os.isatty, range(3)))


def run() -> None:
    """Ends this process. Returns where nobody does it."""
    os.umask(umask := os.umask(0))
    request = {"arguments": sys.orig_argv[2:], "folder": os.getcwd(), "umask": umask, "environment": dict(os.environ)}
    content = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(os.environ[ADDRESS])
        except OSError:
            return
        socket.send_fds(server, [len(content).to_bytes(4)], [0, 1, 2])
        server.sendall(content)
        told = server.makefile("r")
        if not (pid := int(told.readline() or 0)):
            return
        for number in _PASSED_ON:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        code = int(told.readline() or -signal.SIGKILL)
    if code < 0:
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
