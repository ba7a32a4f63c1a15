"""A process that has loaded Airflow, which takes seconds: the labs of a test process are its forks, and start at once.

A request is a lab's environment as JSON. With it come the files that the lab has for its requests, its log and its
answers. It is answered with the id of the lab's process. The argument is the file descriptor of a socket: who closes
its other end ends this process, with it go its labs.
"""

import asyncio
import ctypes
import gc
import json
import os
import random
import signal
import socket
import sys
import traceback
from contextlib import suppress

import httpx
from airflow import configuration, settings
from airflow.sdk.execution_time.supervisor import in_process_api_server
from sqlalchemy.orm import configure_mappers

from tests.dags import lab

_LARGEST_REQUEST = 1 << 18
_FILES = 3
_PR_SET_PDEATHSIG = 1


def main(requests: int) -> None:
    lab.app()
    configure_mappers()  # else each lab does it
    asyncio.run(_ask_what_tasks_ask())
    gc.collect()
    gc.freeze()  # what Airflow has loaded stays
    with socket.socket(fileno=requests) as asked:
        while True:
            request, files, _, _ = socket.recv_fds(asked, _LARGEST_REQUEST, _FILES)
            _reap()
            if not request:
                return
            asked.send(str(_fork(asked, json.loads(request), files)).encode())
            for file in files:
                os.close(file)


async def _ask_what_tasks_ask() -> None:
    """The first question takes seconds. No thread answers it, as one does in labs: it would be missing in a fork."""
    async with httpx.AsyncClient(transport=in_process_api_server().atransport) as client:
        await client.get("http://in-process.invalid/health")


def _reap() -> None:
    """Labs that have ended. Who asked for one sees its end by itself."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _fork(asked: socket.socket, environment: dict[str, str], files: list[int]) -> int:
    starter = os.getpid()
    if pid := os.fork():
        return pid
    asked.close()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == starter:
            _become(environment, *files)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


def _become(environment: dict[str, str], asked: int, log: int, answers: int) -> None:
    """A lab, as if Airflow had been imported in its environment."""
    for file, place in ((asked, 0), (log, 1), (log, 2)):
        os.dup2(file, place)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    configuration.AIRFLOW_HOME = environment["AIRFLOW_HOME"]
    settings.configure_vars()
    settings.reconfigure_orm()
    lab.main(answers)


if __name__ == "__main__":
    main(int(sys.argv[1]))
