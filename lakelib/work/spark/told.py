"""Errors of lakelib's between processes that Spark lies between: of an error in Python it hands on the text only."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakelib import errors
from lakelib.errors import LakeError

_TOLD = re.compile(r"lakelib\.errors\.(\w+): (?:\[(\w+)\] )?(.*)")


@contextmanager
def told_in_text() -> Iterator[None]:
    """An error's text has its kind, too."""
    try:
        yield
    except LakeError as error:
        raise type(error)(f"[{error.kind}] {error.message}", kind=error.kind, remedy=error.remedy) from None


def error_told(error: BaseException) -> LakeError | None:
    """The error of lakelib's that a task told Spark; None if it was another one."""
    told = _TOLD.search(str(error))
    family = getattr(errors, told[1], None) if told else None
    if told is None or not (isinstance(family, type) and issubclass(family, LakeError)):
        return None
    return family(told[3].strip(), kind=told[2])
