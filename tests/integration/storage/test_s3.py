"""What is true of S3 only: unfinished uploads, credentials, buckets, and services that do not answer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakelib.errors import InvalidInputError, RetryableError
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import Storage, open_storage

BUCKET = "lake"


def test_unfinished_uploads_are_aborted_when_they_are_old(s3_storage: Storage, s3_client: Any) -> None:
    key = s3_storage.uri_of("part/half").removeprefix(f"s3://{BUCKET}/")
    s3_client.create_multipart_upload(Bucket=BUCKET, Key=key)
    now = datetime.now(UTC)
    assert s3_storage.abort_uploads("part", now - timedelta(hours=1)) == 0
    assert s3_storage.abort_uploads("other", now + timedelta(hours=1)) == 0
    assert s3_storage.abort_uploads("part", now + timedelta(hours=1), dry_run=True) == 1
    assert s3_storage.abort_uploads("part", now + timedelta(hours=1)) == 1
    assert s3_storage.abort_uploads("part", now + timedelta(hours=1)) == 0


def test_refused_credentials_name_the_settings(s3_storage: Storage) -> None:
    stranger = open_storage(s3_storage.uri, replace(s3_storage.settings, s3_access_key="stranger"))
    for attempt in (
        lambda: stranger.read_bytes("file"),
        lambda: stranger.write_bytes("file", b"1"),
        lambda: list(stranger.list_files()),
        lambda: stranger.delete_files(["file"]),
    ):
        with pytest.raises(InvalidInputError, match="LAKE_S3_ACCESS_KEY_ID") as raised:
            attempt()
        assert raised.value.kind == "permission_denied"


def test_a_missing_bucket_names_the_setting(s3_settings: StorageSettings) -> None:
    storage = open_storage("s3://nobody/warehouse", s3_settings)
    for attempt in (lambda: storage.write_bytes("file", b"1"), lambda: list(storage.list_files())):
        with pytest.raises(InvalidInputError, match="LAKE_WAREHOUSE") as raised:
            attempt()
        assert raised.value.kind == "missing_bucket"


def test_a_service_that_does_not_answer_is_retryable(s3_settings: StorageSettings) -> None:
    storage = open_storage("s3://lake/x", replace(s3_settings, s3_endpoint="http://127.0.0.1:1"))
    for attempt in (lambda: storage.read_bytes("file"), lambda: list(storage.list_files())):
        with pytest.raises(RetryableError, match="s3://lake/x"):
            attempt()


def test_secrets_are_in_no_repr(s3_storage: Storage) -> None:
    assert "testing-secret" not in repr(s3_storage)
