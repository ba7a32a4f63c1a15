"""What a command line asks for, without doing it."""

from collections.abc import Sequence
from typing import Any

from lakelib.cli.command import Start
from lakelib.cli.main import main

SHORT_FOR = {"discard": ["reject"], "maintain": ["maintain", "--yes"], "overwrite": ["overwrite", "--yes"]}
"""Commands that entry points of `jobs` stand for, where they are not of their name."""


def understood(job: str, arguments: Sequence[str]) -> Any:
    """The value of `pipeline.arguments` that an entry point of `jobs` would work by. Raises SystemExit where the
    arguments are wrong."""
    return asked_for([*SHORT_FOR.get(job, [job]), *arguments])


def asked_for(words: Sequence[str]) -> Any:
    """As `understood`, of a command of `lake`."""
    asked: list[Any] = []

    def note(session: object, name: str, job: Any) -> int:
        asked.append(job.arguments)
        return 0

    code = main(words, Start(carry_out=note))
    if not asked:
        raise SystemExit(code)
    return asked[0]
