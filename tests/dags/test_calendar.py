"""Which partition a run is about, whoever starts it: the scheduler, a backfill, a person who types a key."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from .conftest import Lab

CRONS = {"midnight": "0 0 * * *", "half_past_one": "30 1 * * *", "two": "0 2 * * *", "half_past_two": "30 2 * * *"}
ZONES = {
    "new_york": "America/New_York",
    "berlin": "Europe/Berlin",
    "havana": "America/Havana",
    "beirut": "Asia/Beirut",
    "lord_howe": "Australia/Lord_Howe",
    "utc": "UTC",
}
_SPEC = """\
table: {zone}.{name}
columns: id BIGINT, dt DATE
primary_key: [id]
partition_by: [dt]
source: {{path: "/in/{{partition}}/*.parquet"}}
partition: {{column: dt, every: day}}
schedule: {schedule}
"""


@pytest.fixture(scope="module")
def clocks(open_lab: Callable[..., Lab], tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("clocks")
    for zone, timezone in ZONES.items():
        for name, cron in CRONS.items():
            schedule = f'{{cron: "{cron}", timezone: {timezone}, start: 2026-01-01, catchup: true}}'
            _write(folder, zone, name, schedule)
    lab = open_lab(LAKE_TABLES=str(folder))
    assert lab("parse")["errors"] == {}
    return lab


def _write(folder: Path, zone: str, name: str, schedule: str) -> None:
    (folder / f"{zone}-{name}.yaml").write_text(_SPEC.format(zone=zone, name=name, schedule=schedule))


def _calendar(lab: Lab, zone: str, name: str) -> dict[str, Any]:
    begin = datetime(2026, 1, 1, tzinfo=ZoneInfo(ZONES[zone]))
    end = datetime(2026, 12, 31, 12, tzinfo=ZoneInfo(ZONES[zone]))
    dag_id = f"ingest__{zone}__{name}"
    found: dict[str, Any] = lab("calendar", dag_id=dag_id, first=begin.isoformat(), last=end.isoformat())
    return found


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", CRONS)
def test_each_day_is_ingested_once_when_it_is_over(clocks: Lab, zone: str, name: str) -> None:
    scheduled = _calendar(clocks, zone, name)["scheduled"]
    days = [date(2025, 12, 31) + timedelta(days=number) for number in range(365)]
    assert [key for key, *_ in scheduled] == [day.isoformat() for day in days]
    due = [datetime.fromisoformat(moment).astimezone(ZoneInfo(ZONES[zone])).date() for _, moment, *_ in scheduled]
    assert due == [day + timedelta(days=1) for day in days]


@pytest.mark.parametrize("zone", ZONES)
def test_a_schedule_a_backfill_and_a_key_typed_by_hand_mean_the_same_day(clocks: Lab, zone: str) -> None:
    found = _calendar(clocks, zone, "two")
    scheduled = {key: moment for key, _, moment, _ in found["scheduled"]}
    assert scheduled == {key: typed for key, _, _, typed in found["scheduled"]}
    backfilled = dict(found["backfilled"])
    assert list(backfilled) == [(date(2026, 1, 1) + timedelta(days=number)).isoformat() for number in range(365)]
    assert backfilled.items() >= {key: moment for key, moment in scheduled.items() if key >= "2026"}.items()
