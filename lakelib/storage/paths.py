"""Pure, but for `new_attempt_id` and the working directory that relative paths start from. Names files and folders.

A URI here is `scheme://authority/path` whose path is taken literally: '%2F' in it is three characters of a file's name.
"""

import hashlib
import os
import re
import secrets
import time
from collections.abc import Sequence
from functools import lru_cache

from lakelib.errors import InvalidInputError
from lakelib.model.files import FOLDER, PartitionKey
from lakelib.model.schema import Column
from lakelib.model.sortable import decode
from lakelib.settings import SCHEME_ALIASES, SCHEMES, holds_login

NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"
MAX_SEGMENT_BYTES = 200

OWN_CATALOG = ".catalog"
"""The folder of a local warehouse that its own catalog is in, if it has one. Nothing in it is a file of a table."""

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_CUT_MARK = "~"
"""Stands only before the hash of a cut segment: in values it is escaped, so no whole segment equals a cut one."""
_HASH_BYTES = 16
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)?\Z", re.DOTALL)
_LOGIN = re.compile(r":/.*@", re.DOTALL)
_OWN_NAME = re.compile(r"[a-z][a-z_]*-[0-9a-f]{32}-[0-9]{5,}\.parquet")
_OWN_MASK = re.compile(rf"{FOLDER}/deletion_vector_[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}\.bin")
_MICROS_PER_DAY = 86_400_000_000
_MOST_KNOWN = 1024
"""So many names are known from the last time: those of a few tables and partitions come again with each file."""


def partition_path(columns: Sequence[Column], key: PartitionKey) -> str:
    """The folder of a partition, `dt=2026-11-18/region=a%2Fb`; '' for a table without partitions.

    Distinct keys have distinct paths. The path is for people and other tools; the key itself is in the catalog.
    """
    return "/".join(_segment(column, encoded) for column, encoded in zip(columns, key, strict=True))


def new_attempt_id() -> str:
    """An id that no other attempt has, as hex; ids sort by the millisecond of their making (the layout of UUIDv7)."""
    return attempt_id(time.time_ns() // 1_000_000, secrets.token_bytes(10))


def attempt_id(now_ms: int, chance: bytes) -> str:
    return f"{now_ms:012x}{chance.hex()}"


def file_name(kind: str, attempt: str, number: int) -> str:
    """The name of file `number` of one attempt to write, such as `delta-019a…-00000.parquet`."""
    return f"{kind}-{attempt}-{number:05d}.parquet"


def is_own_file(path: str) -> bool:
    """Whether the file's name is one that `file_name` gives, or a mask's: nobody else's file is taken for one of
    lakelib's."""
    *folders, name = path.split("/")
    is_mask = _OWN_MASK.fullmatch("/".join((*folders[-1:], name))) is not None
    return (is_mask or _OWN_NAME.fullmatch(name) is not None) and OWN_CATALOG not in folders


def leads_back(path: str) -> bool:
    """Whether a path that a listing gave, relative to a root, names the same file below that root. A key of S3 may look
    like the URI of another file, or lead out of its folder."""
    return "://" not in path and ".." not in path.split("/")


def complete_uri(text: str, default_fs: str | None = None) -> str:
    """A full URI from what a person wrote: the scheme is completed from `default_fs`, else it is a local path.

    `s3a:` and `s3n:` become `s3:`; a trailing slash goes. Raises InvalidInputError on a scheme that is not known.
    """
    matched = _SCHEME.match(text)
    if matched:
        return _normal_uri(text, matched[1].lower(), matched[2] or "")
    if not text.strip():
        raise InvalidInputError("A location is empty.", kind="invalid_location", remedy="Give a path or a URI.")
    if default_fs and not default_fs.startswith("file:"):
        inside = text[2:] if text.startswith("./") else text
        return complete_uri(f"{default_fs.rstrip('/')}/{inside.lstrip('/')}")
    return f"file://{os.path.abspath(text)}"


def split_uri(uri: str) -> tuple[str, str, str]:
    """Scheme, authority and path (with its leading slash) of a complete URI."""
    scheme, _, rest = uri.partition("://")
    authority, slash, path = rest.partition("/")
    return scheme, authority, slash + path


def join_uri(uri: str, path: str) -> str:
    separator = "" if uri.endswith("/") else "/"
    return f"{uri}{separator}{path}" if path else uri


@lru_cache(maxsize=_MOST_KNOWN)
def _normal_uri(text: str, scheme: str, rest: str) -> str:
    scheme = SCHEME_ALIASES.get(scheme, scheme)
    if scheme not in SCHEMES:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise InvalidInputError(
            f"Location {_LOGIN.sub('://…@', text)!r} has the unknown scheme {scheme!r}.",
            kind="unknown_scheme",
            remedy=f"Known: {known}.",
        )
    if scheme == "file":
        return _local_uri(text, rest)
    authority, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", "")
    if not authority:
        raise InvalidInputError(
            f"Location {_LOGIN.sub('://…@', text)!r} names no {'host' if scheme == 'hdfs' else 'bucket'}.",
            kind="invalid_location",
            remedy=f"Write {scheme}://name/path.",
        )
    if holds_login(scheme, authority):
        raise InvalidInputError(
            f"A location of {scheme}:// has credentials in its URI.",
            kind="invalid_location",
            remedy="Give them as settings: s3_access_key and s3_secret_key (LAKE_S3_ACCESS_KEY_ID, …).",
        )
    inside = "/".join(part for part in path.split("/") if part)
    return f"{scheme}://{authority}/{inside}" if inside else f"{scheme}://{authority}"


def _local_uri(text: str, rest: str) -> str:
    path = rest
    if rest.startswith("//"):
        host, _, inside = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidInputError(
                f"Location {_LOGIN.sub('://…@', text)!r} names a host; local files have none.",
                kind="invalid_location",
                remedy="Write file:///absolute/path.",
            )
        path = f"/{inside}"
    return f"file://{os.path.normpath('/' + path.lstrip('/'))}"


@lru_cache(maxsize=_MOST_KNOWN)
def _segment(column: Column, encoded: bytes | None) -> str:
    name = _escape(column.name, also_first="_.")
    value = NULL_VALUE if encoded is None else _escape(value_text(column.type, encoded), also_first="_")
    whole = f"{name}={value}"
    if len(whole) <= MAX_SEGMENT_BYTES:
        return whole
    digest = hashlib.blake2b(whole.encode(), digest_size=_HASH_BYTES).hexdigest()
    head = whole[: MAX_SEGMENT_BYTES - len(digest) - len(_CUT_MARK)]
    return f"{re.sub('%.?$', '', head)}{_CUT_MARK}{digest}"


def _escape(text: str, *, also_first: str) -> str:
    """Percent-escapes what is not safe in a name everywhere; `also_first` are not safe as the first character.

    A leading '_' is escaped because the text `__HIVE_DEFAULT_PARTITION__` is not NULL, and because, like a leading '.',
    it hides a folder from other tools.
    """
    escaped = "".join(char if char in _SAFE else _percent(char) for char in text)
    return _percent(escaped[0]) + escaped[1:] if escaped and escaped[0] in also_first else escaped


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())


def value_text(type_text: str, encoded: bytes) -> str:
    raw = decode(type_text, encoded)
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, bytes):
        return raw.hex()
    if isinstance(raw, int):
        return _integer_text(type_text, raw)
    return str(raw)


def _integer_text(type_text: str, raw: int) -> str:
    if type_text == "date":
        return _date_text(raw)
    if type_text == "timestamp":
        return f"{_timestamp_text(raw)}Z"
    if type_text == "timestamp_ntz":
        return _timestamp_text(raw)
    if type_text.startswith("decimal("):
        return _decimal_text(raw, scale=int(type_text.rstrip(")").partition(",")[2] or 0))
    return str(raw)


def _timestamp_text(micros: int) -> str:
    days, rest = divmod(micros, _MICROS_PER_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    hours, seconds = divmod(seconds, 3600)
    clock = f"{hours:02d}:{seconds // 60:02d}:{seconds % 60:02d}"
    return f"{_date_text(days)}T{clock}" + (f".{fraction:06d}" if fraction else "")


def _date_text(days: int) -> str:
    """ISO date in the proleptic Gregorian calendar, for every year: `datetime` ends at 9999.

    Counts in eras of 400 years (146,097 days) that begin on March 1st, so that a leap day is an era's or year's last.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = era * 400 + year_of_era + (month <= 2)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def _decimal_text(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"
