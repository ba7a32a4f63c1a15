"""Storage. One S3 bucket as a process reaches it: pyarrow carries the bytes, boto3 does what pyarrow lacks."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from lakelib.settings import StorageSettings
from lakelib.storage.listing import FailedDelete, FileEntry, abort_s3_uploads, delete_s3, list_s3, s3_entry

_TIMEOUT_SECONDS = 60.0
_ATTEMPTS = 3
_EXISTS_ALREADY = 412
_IS_BEING_MADE = 409
"""Somebody else is at it, who may fail: it is to be tried again."""
_MISSING = 404
_ANY_REGION = "us-east-1"
"""What services of one's own, which have no regions, expect in a signature."""


class S3Store:
    def __init__(self, bucket: str, settings: StorageSettings) -> None:
        self.filesystem: fs.FileSystem = _open_filesystem(bucket, settings)
        self._bucket = bucket
        self._settings = settings
        self._lock = threading.Lock()
        self._client: Any = None

    def clock(self) -> datetime | None:
        """What the service says in the header of its answers."""
        reply = self._boto3().list_objects_v2(Bucket=self._bucket, MaxKeys=1)
        told = reply["ResponseMetadata"].get("HTTPHeaders", {}).get("date")
        return None if told is None else parsedate_to_datetime(told)

    def open_output(self, name: str) -> pa.NativeFile:
        return self.filesystem.open_output_stream(name, compression=None)

    def list_files(self, folder: str, *, follow_links: bool) -> Iterator[FileEntry]:
        for entry in list_s3(self._boto3(), self._bucket, self._prefix(folder)):
            yield replace(entry, path=f"{self._bucket}/{entry.path}")

    def find_file(self, name: str) -> FileEntry | None:
        client, (bucket, _, key) = self._boto3(), name.partition("/")
        try:
            told = client.head_object(Bucket=bucket, Key=key)
        except client.exceptions.ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == _MISSING:
                return None
            raise
        return s3_entry(name, told["ContentLength"], told)

    def delete_files(self, names: Iterable[str]) -> Iterator[FailedDelete]:
        keys = (name.partition("/")[2] for name in names)
        for failed in delete_s3(self._boto3(), self._bucket, keys):
            yield FailedDelete(path=f"{self._bucket}/{failed.path}", reason=failed.reason)

    def abort_uploads(self, folder: str, older_than: datetime, *, dry_run: bool) -> int:
        return abort_s3_uploads(self._boto3(), self._bucket, self._prefix(folder), older_than, dry_run=dry_run)

    def make_durable(self, name: str) -> None:
        """A closed object is durable."""

    def put(self, name: str, content: bytes, *, only_new: bool) -> bool:
        """Some services ignore the condition, and replace the object. False, too, while another one is at it."""
        client = self._boto3()
        bucket, _, key = name.partition("/")
        condition = {"IfNoneMatch": "*"} if only_new else {}
        for _ in range(_ATTEMPTS):
            try:
                client.put_object(Bucket=bucket, Key=key, Body=content, **condition)
            except client.exceptions.ClientError as error:
                status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
                if status not in (_EXISTS_ALREADY, _IS_BEING_MADE):
                    raise
                if status == _EXISTS_ALREADY:
                    return False
            else:
                return True
        return False

    def put_in_order(self, files: Sequence[tuple[str, bytes]]) -> int:
        return put_one_by_one(self, files)

    def _prefix(self, folder: str) -> str:
        key = folder.partition("/")[2].rstrip("/")
        return f"{key}/" if key else ""

    def _boto3(self) -> Any:
        with self._lock:  # making a client is not thread-safe; using one is
            if self._client is None:
                self._client = _open_client(self._settings)
            return self._client


class _Putting(Protocol):
    def put(self, name: str, content: bytes, *, only_new: bool) -> bool: ...


def put_one_by_one(store: _Putting, files: Sequence[tuple[str, bytes]]) -> int:
    """How many were new, up to the first that was not."""
    for count, (name, content) in enumerate(files):
        if not store.put(name, content, only_new=True):
            return count
    return len(files)


def silent_seconds(settings: StorageSettings) -> float:
    """How long one try of a request may be without a byte coming or going: a transfer that is slow goes on. The tries
    and the pauses between them fit into the timeout; an upload's are longer, for the driver notices later that nothing
    is taken, and closing the file tries once more."""
    return (settings.s3_timeout_seconds or _TIMEOUT_SECONDS) / (_ATTEMPTS + 1)


def _open_filesystem(bucket: str, settings: StorageSettings) -> fs.S3FileSystem:
    """Writes block while a part is sent, so that a slow store cannot fill the memory; small files are one request."""
    scheme, endpoint = _endpoint(settings)
    access_key, secret_key, session_token = _credentials(settings)
    return fs.S3FileSystem(
        access_key=access_key,
        secret_key=secret_key,
        session_token=session_token,
        region=_region(bucket, settings),
        scheme=scheme,
        endpoint_override=endpoint,
        background_writes=False,
        allow_delayed_open=True,
        connect_timeout=silent_seconds(settings),
        request_timeout=silent_seconds(settings),
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )


def _open_client(settings: StorageSettings) -> Any:
    import boto3
    from botocore.config import Config

    access_key, secret_key, session_token = _credentials(settings)
    return boto3.session.Session().client(
        "s3",
        endpoint_url=settings.s3_endpoint,
        region_name=settings.s3_region or (_ANY_REGION if settings.s3_endpoint else None),
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        aws_session_token=session_token,
        config=Config(
            connect_timeout=silent_seconds(settings),
            read_timeout=silent_seconds(settings),
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            s3={"addressing_style": "path" if settings.s3_endpoint else "auto"},
            # Services other than Amazon's refuse the checksums that boto3 adds by default.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def _endpoint(settings: StorageSettings) -> tuple[str | None, str | None]:
    if settings.s3_endpoint is None:
        return None, None
    url = urlsplit(settings.s3_endpoint)
    return url.scheme, f"{url.netloc}{url.path}"


def _region(bucket: str, settings: StorageSettings) -> str:
    if settings.s3_region:
        return settings.s3_region
    if settings.s3_endpoint:
        return _ANY_REGION
    region: str = fs.resolve_s3_region(bucket)
    return region


def _credentials(settings: StorageSettings) -> tuple[str | None, str | None, str | None]:
    """The keys that were set, else those of the profile that was set; None leaves the search to pyarrow and boto3."""
    if settings.s3_access_key or not settings.s3_profile:
        return settings.s3_access_key, settings.s3_secret_key, settings.s3_session_token
    import boto3

    found = boto3.session.Session(profile_name=settings.s3_profile).get_credentials()
    frozen = found.get_frozen_credentials() if found else None
    return (frozen.access_key, frozen.secret_key, frozen.token) if frozen else (None, None, None)
