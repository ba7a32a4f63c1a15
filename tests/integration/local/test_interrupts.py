"""A query that a person interrupts ends, whatever it is doing at that moment."""

import subprocess
import sys

import pytest

_BEGINNING = """
import os, signal, sys, threading
from lakelib.local.database import opened_database
from lakelib.local.engine import run_query

def asked(text):
    list(run_query([text], [("n", "bigint")], {}, {}, folder=None, threads=2))

def transformed(text):
    with opened_database(1 << 28, 2) as database:
        list(database.batches(text))
"""
_END = """
carry_out("SELECT 1 AS n")
for delay in map(float, sys.argv[1:]):
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        carry_out("SELECT sum(a.i * b.i + c.i) AS n FROM range(1000000) a(i), range(1000000) b(i), range(1000) c(i)")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("way", ["asked", "transformed"])
def test_an_interrupted_query_ends(way: str) -> None:
    program = f"{_BEGINNING}carry_out = {way}\n{_END}"
    delays = ("0.05", "0.1", "0.2", "0.4", "0.8")
    ended = subprocess.run([sys.executable, "-c", program, *delays], capture_output=True, text=True, timeout=40)
    assert (ended.stdout.split(), ended.returncode) == (["interrupted"] * len(delays), 0), ended.stderr
