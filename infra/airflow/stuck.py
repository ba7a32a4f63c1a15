"""Parts of an instance that run and do nothing: a scheduler that was to end, and waits for ever for a worker that is
idle, has its process still."""

import time
from collections.abc import Mapping

from infra.airflow.api import health
from infra.airflow.instance import Home, read_state
from infra.airflow.lifecycle import HEALTHY_SECONDS, running_parts
from infra.airflow.processes import end

STUCK_SECONDS = HEALTHY_SECONDS
"""For so long a part may be told of as not healthy, as for so long it may take to start."""
_END_SECONDS = 20.0

Since = Mapping[str, float]
"""From when on a part has not been healthy, by its name."""


def end_stuck(home: Home, since: Since) -> tuple[Since, list[str]]:
    """Who is not healthy now, and who was ended for not having been for too long. Where nobody answers nobody is told
    of."""
    state = read_state(home)
    told = {} if state is None else health(state.url)
    running, now = running_parts(home), time.monotonic()
    unhealthy = {name for name in running if told.get(name.replace("-", "_"), "healthy") != "healthy"}
    since = {name: since.get(name, now) for name in sorted(unhealthy)}
    stuck = [name for name, moment in since.items() if now - moment > STUCK_SECONDS]
    end([running[name] for name in stuck], seconds=_END_SECONDS)
    return {name: moment for name, moment in since.items() if name not in stuck}, stuck
