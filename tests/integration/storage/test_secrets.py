"""A store that refuses, or is not there, makes no message with a key in it."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lakelib import LakeError
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import Storage, open_storage
from tests.conftest import BUCKET

USES: dict[str, Callable[[Storage], Any]] = {
    "read": lambda storage: storage.read_bytes("file"),
    "write": lambda storage: storage.write_bytes("file", b"x"),
    "size": lambda storage: storage.size("file"),
    "list": lambda storage: list(storage.list_files()),
    "delete": lambda storage: storage.delete_files(["file"]),
    "uploads": lambda storage: storage.abort_uploads("", datetime.now(UTC)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_key_that_is_refused_is_in_no_message(
    s3_settings: StorageSettings, use: Callable[[Storage], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = replace(
        s3_settings, s3_access_key="HUNTERACCESS", s3_secret_key="swordfish/secret", s3_session_token="swordfish/token"
    )
    storage = open_storage(f"s3://{BUCKET}/refused", settings)
    with pytest.raises(LakeError) as caught:
        use(storage)
    error = caught.value
    told = f"{storage!r} {storage} {error!r} {error} {error.__cause__!r} {error.__context__!r} {caplog.text}"
    assert not any(secret in told for secret in ("HUNTERACCESS", "swordfish"))
