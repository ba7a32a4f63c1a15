"""Who of several test processes gets which file of tests, and when.

A file is one piece of work. The longest come first: none of them is to be the last, when nothing is left for the other
processes to do. Whoever has a Spark session, a Spark Connect server or Airflow goes on with files that need one, and
others keep away from those as long as there is something else: a session takes as much as a hundred tests on it. Nor
does anybody start one more session than there are cores, but for two: it ends instead, for those are busy.
"""

import os
from collections.abc import Iterable

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

LONGEST_FIRST = (
    "dags/test_flow.py",
    "integration/spark/test_standalone.py",
    "connect/test_processes.py",
    "dags/test_recovery.py",
    "acceptance/test_compaction.py",
    "dags/test_runs.py",
    "spark/test_stream_read.py",
    "spark/test_stream_write.py",
    "spark/test_filters.py",
    "acceptance/test_buckets.py",
    "dags/test_backfill_chain.py",
    "cli/test_docs.py",
    "integration/gates/test_engines.py",
    "spark/test_source.py",
    "acceptance/test_reading.py",
    "integration/faults/test_embedded_folder.py",
    "integration/faults/test_embedded_server.py",
    "connect/test_streams.py",
    "jobs/test_processes.py",
    "jobs/test_source_paths.py",
    "integration/faults/test_crash_matrix.py",
    "dags/test_pages.py",
    "integration/catalog/test_instance_roles.py",
    "acceptance/test_values.py",
    "acceptance/test_long_predicates.py",
    "dags/test_files.py",
    "dags/test_operator.py",
    "integration/local/test_same_values.py",
    "property/test_lake_machine.py",
    "jobs/test_ingest_killed.py",
    "integration/catalog/test_identity.py",
    "integration/faults/test_stuck_publishers.py",
    "integration/faults/test_lost_replies.py",
    "integration/faults/test_killed_maintenance.py",
    "integration/faults/test_network.py",
    "spark/test_constants.py",
    "unit/specs/test_calendar.py",
    "property/test_two_versions.py",
    "property/test_lake_machine_on_spark.py",
    "jobs/test_examples.py",
)
"""By the processor time that they take, and by how long they wait: those of a dozen seconds and more."""

_AIRFLOW = ("dags/",)
_CONNECT = ("connect/", "dags/test_runs.py", "integration/spark/test_connect.py")
_SPARK = (
    "acceptance/",
    "cli/test_check.py",
    "integration/gates/test_engines.py",
    "integration/local/test_same_values.py",
    "integration/spark/",
    "jobs/",
    "property/test_lake_machine_on_spark.py",
    "spark/",
)
_WANTED = ("spark", "spark", "connect", "airflow")
"""By each of the processes, as long as there is some of it."""


class HandingOut(LoadFileScheduling):
    """File after file, each to the process that it suits best."""

    def _reschedule(self, node: WorkerController) -> None:
        if self.workqueue and not any(may_begin(file, self.nodes.index(node)) for file in self.workqueue):
            node.shutdown()  # once it has done what it has
        else:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(choose(self.workqueue, self.nodes.index(node)), last=False)
        super()._assign_work_unit(node)


def choose(files: Iterable[str], process: int) -> str:
    """Of files in the order in which they are to be begun, the one that this process is to begin."""
    wanted = _WANTED[process] if process < len(_WANTED) else ""
    return min(files, key=lambda file: (not may_begin(file, process), need(file) != wanted, need(file) != ""))


def may_begin(file: str, process: int, cores: int = os.cpu_count() or 1) -> bool:
    """Whether this process is to do it at all: there is always one that does."""
    return need(file) != "spark" or process < max(cores, _WANTED.count("spark"))


def need(file: str) -> str:
    """What a file of tests needs that takes long to start."""
    name = file.removeprefix("tests/")
    needs = {"connect": _CONNECT, "spark": _SPARK, "airflow": _AIRFLOW}
    return next((what for what, files in needs.items() if name.startswith(files)), "")
