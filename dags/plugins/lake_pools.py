"""Airflow plugin: the pools that the lake's tasks take slots of are there before anything is scheduled.

Airflow loads it if `[core] plugins_folder` is this folder. A pool that exists is left as it is: how many slots it has
is up to whoever looks after Airflow.
"""

import logging
import sys
from pathlib import Path
from typing import Any, ClassVar

from airflow.jobs.job import Job
from airflow.listeners import hookimpl
from airflow.models.pool import Pool
from airflow.plugins_manager import AirflowPlugin
from airflow.utils.session import create_session
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

# The scheduler reads no DAGs, so their folder is not on its path.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from lake_dags.pools import DESCRIPTIONS, slots_of

_log = logging.getLogger(__name__)


class Pools:
    """Made when the scheduler starts. Triggerer and DAG processor may be first; they would make the same."""

    @hookimpl
    def on_starting(self, component: Any) -> None:
        if not isinstance(component, Job):
            return  # a task: it has no database
        for name in DESCRIPTIONS:
            _make(name, _slots(name))


class LakePoolsPlugin(AirflowPlugin):
    name = "lake_pools"
    listeners: ClassVar = [Pools()]  # type: ignore[misc]


def _slots(name: str) -> int:
    """A slip in a setting must not leave tasks waiting for a pool for ever."""
    try:
        return slots_of(name)
    except ValueError as error:
        slots = slots_of(name, {})
        _log.error("%s Until then the pool %s has %d.", error, name, slots)
        return slots


def _make(name: str, slots: int) -> None:
    try:
        with create_session() as session:
            if session.scalar(select(Pool.id).where(Pool.pool == name)) is not None:
                return
            session.add(Pool(pool=name, slots=slots, description=DESCRIPTIONS[name], include_deferred=False))
    except IntegrityError:
        return  # another part of Airflow was faster
    _log.info("Made the pool %s with %d slots", name, slots)
