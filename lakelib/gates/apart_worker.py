"""Tests texts with Python, in a process of its own: what may take for ever, and can be ended there.

Needs the standard library only, so that it is there at once; run as a file. Reads requests and writes answers, pickled,
each behind its length.
"""

import json
import pickle
import re
import resource
import struct
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

_LENGTH = struct.Struct("<Q")
_SPARE_SECONDS = 5


def main() -> None:
    """Ends with its input. Whoever asks may be gone by then: the system ends what computes for too long."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while head := requests.read(_LENGTH.size):
        kind, argument, texts, seconds = pickle.loads(requests.read(*_LENGTH.unpack(head)))
        _limit(seconds)
        answer = pickle.dumps(_answer(kind, argument, texts))
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _answer(kind: str, argument: Any, texts: list[str]) -> bytes | str:
    """Whether each text passes; or what went wrong."""
    try:
        test = _TESTS[kind](argument)
        return bytes(test(text) for text in texts)
    except Exception as error:  # whatever is wrong with the argument, or with a text
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _limit(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + _SPARE_SECONDS
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _holds_match(argument: tuple[tuple[str, ...], bool, bool]) -> Callable[[str], bool]:
    patterns, every, negated = argument
    searches = [re.compile(pattern).search for pattern in patterns]
    combine = all if every else any
    return lambda text: combine(search(text) is not None for search in searches) is not negated


def _is_json(_: Any) -> Callable[[str], bool]:
    def test(text: str) -> bool:
        try:
            json.loads(text)
        except Exception:  # also what is nested too deeply
            return False
        return True

    return test


def _fits_json_schema(schema: Any) -> Callable[[str], bool]:
    try:
        import jsonschema
    except ImportError:
        raise ImportError('jsonschema is not installed. Run: pip install "lakelib[gates]"') from None

    def test(text: str) -> bool:
        try:
            jsonschema.validate(json.loads(text), schema)
        except jsonschema.ValidationError:
            return False
        return True

    return test


def _is_moment(form: str) -> Callable[[str], bool]:
    def test(text: str) -> bool:
        try:
            datetime.strptime(text, form)
        except ValueError:
            return False
        return True

    return test


_TESTS: dict[str, Callable[[Any], Callable[[str], bool]]] = {
    "patterns": _holds_match,
    "json": _is_json,
    "json schema": _fits_json_schema,
    "moment": _is_moment,
}

if __name__ == "__main__":
    main()
