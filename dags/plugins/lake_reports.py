"""Airflow plugin: the API server shows the reports of gates' verdicts, to those who may see the DAG.

Airflow loads it if `[core] plugins_folder` is this folder. The routes of a plugin are open unless they ask for a login.
"""

import sys
from pathlib import Path
from typing import ClassVar

from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import FileResponse

# The API server reads no DAGs, so their folder is not on its path.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from lake_dags.places import REPORTS_URL, newest_report, runs_folder, task_folder

_HEADERS = {
    # A report shows rows that a gate found wanting: whatever they hold, it runs no script with the viewer's rights.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}

app = FastAPI(title="Reports of gates", docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/reports/{dag_id}/{run_id}/{task_id}/{map_index}", dependencies=[Depends(requires_access_dag("GET"))])
def show_report(dag_id: str, run_id: str, task_id: str, map_index: int) -> FileResponse:
    """The report that a task wrote last."""
    report = newest_report(task_folder(dag_id, run_id, task_id, map_index))
    if report is None:
        raise HTTPException(404, f"There is no report of task {task_id} of run {run_id} in {runs_folder()}.")
    return FileResponse(report, media_type="text/html; charset=utf-8", headers=_HEADERS)


class LakeReportsPlugin(AirflowPlugin):
    name = "lake_reports"
    fastapi_apps: ClassVar = [{"app": app, "url_prefix": REPORTS_URL, "name": "Reports of gates"}]  # type: ignore[misc]
