"""A lakehouse for Python, Spark, PostgreSQL and Airflow: `lakelib.connect()` is where to begin."""

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
    "connect",
]
