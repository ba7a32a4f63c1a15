"""A lakehouse for Python, Spark, PostgreSQL and Airflow: `lakelib.connect()` is where to begin.

The public names are loaded when they are first used: whoever only needs a part of lakelib, such as a DAG file that
reads table specs, does not wait for Arrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakelib.changes import Changes
    from lakelib.consumer import Consumer
    from lakelib.errors import (
        ConflictError,
        CorruptionError,
        InvalidInputError,
        LakeError,
        NotFoundError,
        OutcomeUnknownError,
        RejectedError,
        RetryableError,
    )
    from lakelib.lake import Lake, Transaction, connect, migrate, restore
    from lakelib.merge_into import MergeInto
    from lakelib.model.gate import Verdict
    from lakelib.model.table import Snapshot
    from lakelib.model.upgrade import Upgrade
    from lakelib.result import Result
    from lakelib.scan import Scan
    from lakelib.staged import StagedCommit
    from lakelib.table import Table

    __version__: str

__all__ = [
    "Changes",
    "ConflictError",
    "Consumer",
    "CorruptionError",
    "InvalidInputError",
    "Lake",
    "LakeError",
    "MergeInto",
    "NotFoundError",
    "OutcomeUnknownError",
    "RejectedError",
    "Result",
    "RetryableError",
    "Scan",
    "Snapshot",
    "StagedCommit",
    "Table",
    "Transaction",
    "Upgrade",
    "Verdict",
    "__version__",
    "connect",
    "migrate",
    "restore",
]

_HOMES = {
    "Changes": "lakelib.changes",
    "Consumer": "lakelib.consumer",
    "Lake": "lakelib.lake",
    "MergeInto": "lakelib.merge_into",
    "Result": "lakelib.result",
    "Scan": "lakelib.scan",
    "Snapshot": "lakelib.model.table",
    "StagedCommit": "lakelib.staged",
    "Table": "lakelib.table",
    "Transaction": "lakelib.lake",
    "Upgrade": "lakelib.model.upgrade",
    "Verdict": "lakelib.model.gate",
    "connect": "lakelib.lake",
    "migrate": "lakelib.lake",
    "restore": "lakelib.lake",
}
"""Where the public names live that are not errors."""


def __getattr__(name: str) -> Any:
    """`__version__` is that of the installed package, which need not be known to import lakelib."""
    if name == "__version__":
        from importlib.metadata import version

        return version("lakelib")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "lakelib.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
