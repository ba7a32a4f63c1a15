"""Airflow plugin: the scheduler and the API server know the timetable of ingest DAGs.

Airflow loads it if `[core] plugins_folder` is this folder.
"""

import sys
from pathlib import Path
from typing import ClassVar

from airflow.plugins_manager import AirflowPlugin

# The API server and the scheduler read no DAGs, so their folder is not on their path.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from lake_dags.timetable import CalendarTimetable


class LakeTimetablesPlugin(AirflowPlugin):
    name = "lake_timetables"
    timetables: ClassVar = [CalendarTimetable]  # type: ignore[misc]
