"""Airflow plugin: the lake's pages in Airflow's navigation, to those who have logged in and may see the DAGs.

Airflow loads it if `[core] plugins_folder` is this folder.
"""

import sys
from pathlib import Path
from typing import ClassVar

from airflow.plugins_manager import AirflowPlugin

# The API server reads no DAGs, so their folder is not on its path.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from lake_dags.pages.app import PAGES_URL, app


class LakePagesPlugin(AirflowPlugin):
    name = "lake_pages"
    fastapi_apps: ClassVar = [{"app": app, "url_prefix": PAGES_URL, "name": "The lake"}]  # type: ignore[misc]
    external_views: ClassVar = [  # type: ignore[misc]
        {
            "name": "Lake",
            "href": f"{PAGES_URL}/",
            "destination": "nav",
            "url_route": "lake",
            "icon": f"{PAGES_URL}/static/icon.svg",
            "nav_top_level": True,
        }
    ]
