"""Airflow plugin: what is to be noticed of an ingest run that has ended well becomes part of its note; the grid shows
that it has one.

Airflow loads it if `[core] plugins_folder` is this folder. Whoever ends a run calls it: the scheduler, or the API
server where a person does.
"""

import sys
from pathlib import Path
from typing import Any, ClassVar

from airflow.listeners import hookimpl
from airflow.models.xcom import XComModel
from airflow.plugins_manager import AirflowPlugin
from sqlalchemy import select
from sqlalchemy.orm import object_session

# The scheduler reads no DAGs, so their folder is not on its path.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from lake_dags.events import with_line
from lakelib.specs.folder import dag_id_of

_INGEST = dag_id_of("")


class Notes:
    """The task *announce* of a run returns what is to be noticed."""

    @hookimpl
    def on_dag_run_success(self, dag_run: Any, msg: str) -> None:
        session = object_session(dag_run)
        if session is None or not dag_run.dag_id.startswith(_INGEST):
            return
        said = session.scalar(
            select(XComModel.value).where(
                XComModel.dag_id == dag_run.dag_id,
                XComModel.run_id == dag_run.run_id,
                XComModel.task_id == "announce",
                XComModel.key == "return_value",
            )
        )
        note = with_line(dag_run.note, said)
        if note == dag_run.note:
            return
        if dag_run.dag_run_note is None:
            dag_run.note = note
        else:
            dag_run.dag_run_note.content = note


class LakeNotesPlugin(AirflowPlugin):
    name = "lake_notes"
    listeners: ClassVar = [Notes()]  # type: ignore[misc]
