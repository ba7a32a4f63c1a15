"""The lake does what a dict would, whichever engine does each of the operations: in process, or Spark, one after the
other on the same tables."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelib import Lake, Scan, StagedCommit, Table
from lakelib.model.gate import Verdict
from lakelib.model.upkeep import CompactionResult
from tests.acceptance.support import SparkEngine
from tests.property.test_lake_machine import IN_PROCESS, LakeMachine, run_machine

RUNS = int(os.environ.get("LAKE_MACHINE_SPARK_RUNS", "3"))
_MANY = 20
"""In so many runs each kind of work is drawn for Spark."""


def test_both_engines_together_do_what_a_dict_does(machine_lake: Lake, spark: SparkSession) -> None:
    taken, steps = Counter[str](), list[str]()
    engines = (IN_PROCESS, *(CountedEngine(spark, each, taken) for each in ("none", "hash", "auto")))
    run_machine(lambda: LakeMachine(machine_lake, ("keyed", "append", "keyed"), steps, engines), RUNS)
    print(f"{len(steps)} steps, of them by Spark {dict(taken)}")
    assert taken.keys() >= ({"write", "open", "compact"} if RUNS >= _MANY else set())
    assert taken


@dataclass(frozen=True)
class CountedEngine(SparkEngine):
    """Spark, and how often it has worked."""

    taken: Counter[str]
    """Is counted up."""

    def write(self, table: Table, kind: str, data: Any, *args: Any, **options: Any) -> Any:
        self.taken["write"] += 1
        return super().write(table, kind, data, *args, **options)

    def _frame(self, data: Any) -> Any:
        """All that the machine draws is something that Spark can hold."""
        frame = super()._frame(data)
        assert isinstance(frame, DataFrame)
        return frame

    def open(self, scan: Scan) -> Callable[[], pa.Table]:
        self.taken["open"] += 1
        return super().open(scan)

    def compact(self, table: Table, **options: Any) -> CompactionResult:
        self.taken["compact"] += 1
        return super().compact(table, **options)

    def judge(self, commit: StagedCommit, gate: Any) -> Verdict:
        self.taken["judge"] += 1
        return super().judge(commit, gate)
