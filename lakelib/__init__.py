"""A lakehouse for Python, Spark, PostgreSQL and Airflow: `lakelib.connect()` is where to begin."""

from typing import TYPE_CHECKING

from lakelib.errors import (
    ConflictError,
    CorruptionError,
    InvalidInputError,
    LakeError,
    NotFoundError,
    RejectedError,
    RetryableError,
)
from lakelib.lake import Lake, Transaction, connect
from lakelib.model.table import Snapshot
from lakelib.scan import Scan
from lakelib.table import StagedCommit, Table

__all__ = [
    "ConflictError",
    "CorruptionError",
    "InvalidInputError",
    "Lake",
    "LakeError",
    "NotFoundError",
    "RejectedError",
    "RetryableError",
    "Scan",
    "Snapshot",
    "StagedCommit",
    "Table",
    "Transaction",
    "__version__",
    "connect",
]

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name):
        """`__version__` is that of the installed package, which need not be known to import lakelib."""
        if name == "__version__":
            from importlib.metadata import version

            return version("lakelib")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
