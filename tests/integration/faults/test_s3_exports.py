"""Processes write one Delta log on S3, where puts fail before and after they are done: each version is there once, and
it is the snapshot."""

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import lakelib
from lakelib.errors import RetryableError
from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from tests.delta_readers import read_delta_rs, rows_of
from tests.integration.faults.bucket import Bucket, bucket
from tests.integration.faults.jobs import Say
from tests.integration.faults.processes import results, run_together

_COMMITS = 6
_EXPORTERS = 3
_MOST_TRIES = 100


@pytest.fixture(params=range(int(os.environ.get("LAKE_DELTA_RUNS", "1"))))
def service(request: pytest.FixtureRequest, s3_settings: StorageSettings) -> Iterator[Bucket]:
    with bucket(str(s3_settings.s3_endpoint), request.param) as made:
        yield made


def _open(warehouse: str, url: str, settings: StorageSettings) -> lakelib.Lake:
    given = {name: value for name, value in asdict(settings).items() if name.startswith("s3_") and value is not None}
    return lakelib.connect(warehouse=warehouse, catalog=url, **given)


def export(say: Say, warehouse: str, url: str, settings: StorageSettings) -> int:
    """As often as it takes. The versions that it wrote."""
    written = 0
    with _open(warehouse, url, settings) as lake:
        for _ in range(_MOST_TRIES):
            try:
                told = lake.table("shop.told").export_delta()
            except RetryableError:
                continue
            written += told.written
            if told.is_complete:
                return written
    raise AssertionError("the log is still not whole")


def _copy(location: str, settings: StorageSettings, folder: Path) -> str:
    """Readers of Delta want more of a service than this one does: they read files."""
    stored = open_storage(location, settings)
    for entry in stored.list_files():
        path = folder / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(stored.read_bytes(entry.path))
    return str(folder)


def test_exporters_write_each_version_once_whatever_the_store_does(
    service: Bucket, s3_settings: StorageSettings, make_database: Callable[[], str], tmp_path: Path
) -> None:
    warehouse, url = f"s3://lake/{uuid4().hex}", make_database()
    through: Any = replace(s3_settings, s3_endpoint=service.endpoint)
    with _open(warehouse, url, through) as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.told", "id bigint, part string", primary_key=["id"], partition_by=["part"])
        for number in range(_COMMITS):
            table.append([{"id": number % 5, "part": "ab"[number % 2]}])

        service.fails = "/_delta_log/"
        results(run_together(export, [(warehouse, url, through)] * _EXPORTERS))
        table.set_options({"delta": "head"})
        for number in range(_COMMITS):  # the publish stands, told or not
            table.append([{"id": number % 5, "part": "ab"[number % 3 % 2]}])
        service.fails = None
        assert table.export_delta().is_complete

        versions = {path: count for path, count in service.created.items() if "/_delta_log/" in path}
        assert list(versions.values()) == [1] * (2 * _COMMITS)
        assert service.faults
        copied = _copy(table.location, s3_settings, tmp_path)
        for version in range(2 * _COMMITS):
            expected = rows_of(table.scan(at=version + 1).to_arrow())
            assert rows_of(read_delta_rs(copied, version)) == expected, version
