"""Waiting for a source: in the triggerer, without a process, and to an end whatever becomes of the triggerer."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from lakelib.settings import StorageSettings
from lakelib.storage.filesystem import open_storage
from tests.conftest import BUCKET
from tests.waiting import wait_until

from .conftest import Lab

_SPEC = """\
table: a.feed
columns: id BIGINT, dt DATE
primary_key: [id]
partition_by: [dt]
source: {path: "${LANDING}/feed/{partition}/*.parquet", arrival: {marker: _READY, timeout: TIMEOUT, poll: 1s}}
partition: {column: dt, every: day}
"""
_SECONDS = 60
FEED, KEY = "ingest__a__feed", "2026-11-01"


@pytest.fixture
def opened(open_lab: Callable[..., Lab], tmp_path: Path) -> Callable[..., Lab]:
    """A lab with a table whose source is waited for so long."""

    def start(timeout: str = "100s", **environment: str) -> Lab:
        (tmp_path / "feed.yaml").write_text(_SPEC.replace("TIMEOUT", timeout))
        settings = {"LAKE_TABLES": str(tmp_path), "LANDING": str(tmp_path / "landing"), **environment}
        lab = open_lab(**settings)
        assert lab("parse")["errors"] == {}
        return lab

    return start


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    return tmp_path / "landing" / "feed" / KEY / "_READY"


def _touch(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.touch()


def _begin(lab: Lab) -> None:
    """A run that has been told that its source is not there."""
    run_id = lab("start", dag_id=FEED, conf={"partition": KEY})
    lab.begin("go", dag_id=FEED, run_id=run_id, until="wait_for_source")
    wait_until(lambda: _looks(lab) > 0, _SECONDS)


def _ended(lab: Lab) -> str:
    return str(lab.finish()["tasks"]["wait_for_source"])


def _looks(lab: Lab) -> int:
    """In vain."""
    return lab.log().count("is not there yet")


def _processes(lab: Lab) -> int:
    """How often a worker has had the task."""
    return lab.log().count("[DAG TEST] starting task_id=wait_for_source")


def test_what_is_there_needs_no_triggerer(opened: Callable[..., Lab], ready: Path) -> None:
    lab = opened()
    lab("triggerer", runs=False)
    _touch(ready)
    run_id = lab("start", dag_id=FEED, conf={"partition": KEY})
    lab.begin("go", dag_id=FEED, run_id=run_id, until="wait_for_source")
    assert (_ended(lab), _processes(lab)) == ("success", 1)


def test_what_comes_later_is_seen_by_the_triggerer_and_takes_no_process(
    opened: Callable[..., Lab], ready: Path
) -> None:
    lab = opened()
    _begin(lab)
    wait_until(lambda: _looks(lab) > 3, _SECONDS)
    _touch(ready)
    assert (_ended(lab), _processes(lab)) == ("success", 1)


def test_what_does_not_come_fails_the_task_for_good_and_is_named(opened: Callable[..., Lab], ready: Path) -> None:
    lab = opened(timeout="3s")
    _begin(lab)
    assert (_ended(lab), _processes(lab)) == ("failed", 2)
    assert f"{ready} did not come within 3 s" in lab.log()


@pytest.mark.parametrize("comes", [True, False])
def test_without_a_triggerer_a_worker_looks_from_time_to_time(
    opened: Callable[..., Lab], ready: Path, comes: bool
) -> None:
    lab = opened(timeout="100s" if comes else "4s")
    lab("triggerer", runs=False)
    lab("put", module="lake_dags.sensor", name="LONGEST_WAIT_SECONDS", value=1.0)
    _begin(lab)
    wait_until(lambda: _processes(lab) > 2, _SECONDS)
    if comes:
        _touch(ready)
    assert _ended(lab) == ("success" if comes else "failed")


def test_where_the_triggerer_cannot_look_a_worker_does_and_says_why(opened: Callable[..., Lab], ready: Path) -> None:
    lab = opened()
    lab("triggerer", **{"knows lakelib": False})
    _begin(lab)
    wait_until(lambda: _looks(lab) > 2, _SECONDS)
    _touch(ready)
    assert _ended(lab) == "success"
    assert "The triggerer could not look, so a worker does" in lab.log()


def test_a_source_on_s3_is_waited_for(opened: Callable[..., Lab], s3_settings: StorageSettings) -> None:
    folder = f"s3://{BUCKET}/{uuid4().hex}"
    settings = {
        "LAKE_S3_ENDPOINT": s3_settings.s3_endpoint,
        "LAKE_S3_REGION": s3_settings.s3_region,
        "LAKE_S3_ACCESS_KEY_ID": s3_settings.s3_access_key,
        "LAKE_S3_SECRET_ACCESS_KEY": s3_settings.s3_secret_key,
        "LANDING": folder,
    }
    lab = opened(**{name: str(value) for name, value in settings.items()})
    _begin(lab)
    wait_until(lambda: _looks(lab) > 2, _SECONDS)
    open_storage(folder, s3_settings).write_bytes(f"feed/{KEY}/_READY", b"")
    assert (_ended(lab), _processes(lab)) == ("success", 1)
