"""A program that uses the lake of its working folder: `python -m tests.integration.faults.embedded_job COMMAND …`.

With nothing named, the lake's catalog is an embedded server. A program of its own ends as programs do, which stops it.
"""

import ctypes
import os
import sys
import threading
import time
from pathlib import Path

import lakelib
from lakelib.catalog.embedded import keep_up_after_exit
from tests.integration.faults.jobs import SCHEMA, read, rows
from tests.integration.faults.server import kill_server

CATALOG = Path(".lake/warehouse/.catalog")


def add_row() -> None:
    """Makes the table if need be, and adds a row of this process."""
    with lakelib.connect() as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], if_not_exists=True)
        table.upsert(rows({os.getpid(): ("mon", 1)}))


def commit(first: str, count: str) -> None:
    """Adds rows one by one, and says the key of each when it is committed."""
    with lakelib.connect() as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], if_not_exists=True)
        for key in range(int(first), int(first) + int(count)):
            table.upsert(rows({key: ("mon", 1)}))
            print(key, flush=True)


def look_in(seconds: str) -> None:
    """As a command does, after which the server stays up."""
    keep_up_after_exit(float(seconds))
    with lakelib.connect() as lake:
        lake.namespaces()


def print_keys() -> None:
    with lakelib.connect() as lake:
        print(*read(lake.table("shop.a")))


def stop_after() -> None:
    """Uses the server until it is told to end."""
    with lakelib.connect():
        print("connected", flush=True)
        input()


def leave_child() -> None:
    """The parent ends while the child, which it has forked, still works."""
    with lakelib.connect() as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], if_not_exists=True)
        table.upsert(rows({1: ("mon", 1)}))
        parent = os.getpid()
        if os.fork() == 0:
            while os.getppid() == parent:
                time.sleep(0.01)
            table.upsert(rows({2: ("mon", 1)}))
            print(*read(table), flush=True)


def outlive_kills() -> None:
    """The server is killed twice, and once more under four threads; the lake works on."""
    with lakelib.connect() as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.a", SCHEMA, primary_key=["id"], if_not_exists=True)
        for number in (1, 2):
            kill_server(CATALOG.absolute())
            table.upsert(rows({number: ("mon", number)}), idempotency_key=("test", number))
        kill_server(CATALOG.absolute())
        threads = [threading.Thread(target=table.upsert, args=(rows({number: ("tue", 1)}),)) for number in (3, 4, 5, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert read(table).keys() == {1, 2, 3, 4, 5, 6}
        assert len(table.history()) == 6


def outlive_kills_without_init() -> None:
    """The same where nobody waits for dead processes, as in a container without an init."""
    pr_set_child_subreaper = 36
    assert ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1) == 0
    outlive_kills()


def connect_in_threads() -> None:
    """Four threads connect at once."""
    lakes: list[lakelib.Lake] = []
    threads = [threading.Thread(target=lambda: lakes.append(lakelib.connect())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lakes) == 4
    for lake in lakes:
        assert lake.namespaces() == []
        lake.close()


def die_with_server() -> None:
    """Both the server and this process are killed, as when a machine goes down."""
    add_row()
    with lakelib.connect() as lake:
        assert lake.namespaces() == ["shop"]
        kill_server(CATALOG.absolute())
        os.kill(os.getpid(), 9)


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    globals()[name](*arguments)
