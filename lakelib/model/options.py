"""Frozen values: a table's options. Each has a name, a type, a default and limits; an unknown name is an error."""

import operator
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, UnknownOptionError
from lakelib.model.text import is_indexable

KIB = 1024
MIB = 1024 * KIB
TIB = 1024 * 1024 * MIB

_MOST_SHOWN = 100

COMPRESSIONS = ("zstd", "snappy", "lz4", "gzip", "none")
DELTA_MODES = ("", "head", "compacted")
DUCKLAKE_MODES = ("", "head")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """How a table's files are written and read. None of it changes what the table means."""

    compression: str = "zstd"
    compression_level: int = 1
    row_group_rows: int = 131_072
    """Rows a row group: what a reader holds of one file at a time, and the grain of pruning inside a file."""
    write_buffer_bytes: int = 128 * MIB
    """What a writer collects before it sorts and writes a run."""
    target_file_bytes: int = 256 * MIB
    """A run of one bucket is cut into files of about this size."""
    min_bucket_file_bytes: int = 512 * KIB
    """A write splits a partition by bucket only as deep as its files stay above this size."""
    read_batch_rows: int = 131_072
    """Most rows in a batch that a scan hands out."""
    compact_runs: int = 5
    """A compaction is due where a key may be in so many runs; in an append table, where so many small files follow each
    other."""
    compact_delta_percent: int = 50
    """All is due to become one run where later runs have this much of the oldest one's bytes, in percent."""
    required_gate: str = ""
    """Name of the gate that must have passed a commit before it may be published; '' for none. Which suite of that name
    it has to be, the table's requirement says; it is changed by requiring and releasing gates."""

    sensitive_columns: str = ""
    """Names of columns, with commas between, whose values no verdict shows."""

    delta: str = ""
    """What a Delta log tells of, which other engines read: "head" for all, "compacted" for what compactions have
    written, for readers without deletion vectors; '' for none."""
    delta_checkpoint_versions: int = 20
    """After so many versions the log gets a checkpoint."""
    delta_log_days: int = 0
    """Files of the log that are older, and behind a checkpoint as old, are deleted by maintenance; 0 for never."""
    delta_keep_hours: int = 0
    """So long files stay that no snapshot needs any more, for readers of older versions of the log."""

    cross_partition: bool = False
    """Whether a key is in one partition at most: a row that comes to another one leaves its own. To change it, ask
    the table: what it has is looked at before."""

    ducklake: str = ""
    """"head" has the masks of each snapshot of a table with a key written for DuckDB, which attaches the lake as a
    DuckLake; '' for no. A table without a key needs nothing for it."""

    def as_mapping(self) -> dict[str, Any]:
        """Only what differs from the default: what the catalog stores and people see."""
        return {
            option.name: getattr(self, option.name)
            for option in fields(self)
            if getattr(self, option.name) != option.default
        }


_LEAST = {
    "compression_level": 1,
    "row_group_rows": 1,
    "write_buffer_bytes": 64 * KIB,
    "target_file_bytes": 64 * KIB,
    "min_bucket_file_bytes": 0,
    "read_batch_rows": 1,
    "compact_runs": 2,
    "compact_delta_percent": 1,
    "delta_checkpoint_versions": 1,
    "delta_log_days": 0,
    "delta_keep_hours": 0,
}

_MOST = {
    "row_group_rows": 2**31 - 1,
    "write_buffer_bytes": TIB,
    "target_file_bytes": TIB,
    "min_bucket_file_bytes": TIB,
    "read_batch_rows": 2**31 - 1,
    "compact_runs": 1_000_000,
    "compact_delta_percent": 1_000_000,
    "delta_checkpoint_versions": 1_000_000,
    "delta_log_days": 36_500,
    "delta_keep_hours": 876_000,
}

_HIGHEST_LEVEL = {"zstd": 22, "gzip": 9}
"""Other compressions have no levels."""


def sensitive_names(options: TableOptions) -> frozenset[str]:
    return frozenset(name.strip() for name in options.sensitive_columns.split(",") if name.strip())


def parse_options(given: Mapping[str, Any]) -> TableOptions:
    """Options as somebody sets them, from names and values; text is converted. Raises InvalidInputError for an unknown
    name or a bad value."""
    options = stored_options(given)
    for name, most in _MOST.items():
        if getattr(options, name) > most:
            raise _wrong(name, getattr(options, name), f"at most {most}")
    return options


def stored_options(given: Mapping[str, Any]) -> TableOptions:
    """The same of a table that there is: one whose options are larger than may be set is read as well."""
    known = {option.name: option for option in fields(TableOptions)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise UnknownOptionError(
                f"Unknown table option {name!r}.",
                remedy=f"Known options: {', '.join(sorted(known))}.",
            )
        values[name] = _convert(name, value, type(known[name].default))
    options = TableOptions(**values)
    highest = _HIGHEST_LEVEL.get(options.compression, _HIGHEST_LEVEL["zstd"])
    if options.compression_level > highest:
        raise _wrong("compression_level", options.compression_level, f"at most {highest} for {options.compression}")
    return options


def _convert(name: str, value: Any, wanted: type) -> Any:
    if wanted is str:
        return _checked_text(name, value)
    if wanted is bool:
        return _checked_flag(name, value)
    try:
        if isinstance(value, bool):
            raise ValueError
        number = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        raise _wrong(name, value, "a whole number") from None
    if number < _LEAST[name]:
        raise _wrong(name, value, f"at least {_LEAST[name]}")
    return number


def _checked_flag(name: str, value: Any) -> bool:
    if isinstance(value, str) and value.casefold() in ("true", "false"):
        return value.casefold() == "true"
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def _checked_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, "text")
    if name == "compression" and value not in COMPRESSIONS:
        raise _wrong(name, value, f"one of {', '.join(COMPRESSIONS)}")
    if name == "delta" and value not in DELTA_MODES:
        raise _wrong(name, value, "head, compacted, or '' for no log")
    if name == "ducklake" and value not in DUCKLAKE_MODES:
        raise _wrong(name, value, "head, or '' for no")
    if not is_indexable(value) or value != value.strip():
        raise _wrong(
            name, value, "text of a usual length, without spaces at its ends, NUL characters and lone surrogates"
        )
    return value


def _wrong(name: str, value: Any, expected: str) -> InvalidInputError:
    shown = repr(value)
    shown = shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "…"
    return InvalidInputError(f"Table option {name} is {shown}.", kind="invalid_option", remedy=f"Give {expected}.")
