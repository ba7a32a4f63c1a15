"""Carries checks out on Arrow rows: all of a suite's in one pass."""

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import LakeError
from lakelib.gates.judgement import judge_checks
from lakelib.gates.plan import GatePlan, plan_checks
from lakelib.gates.tally import Found, Tally, combine
from lakelib.model.gate import CheckResult
from lakelib.model.schema import Column
from lakelib.specs.suite import Check

_RAISED = re.compile(r"[\w.]+(Error|Exception): .")

Batches = Iterable[pa.RecordBatch]
Pieces = Iterator[tuple[int, bytes]]


def run_on_arrow(
    checks: Sequence[Check], columns: Sequence[Column], read: Callable[[Sequence[str]], Batches]
) -> list[CheckResult]:
    """The results in the order of the checks. `read` gives all rows in the columns asked for. Values that have to be
    compared with each other are in memory, and nothing else."""
    plan = plan_checks(checks, columns)
    with Tally(plan) as tally:
        for batch in read(plan.columns) if plan.columns else ():
            tally.add(batch)
        return judge_checks(checks, columns, plan, tally.finish())


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """The same in several places, each with a part of the rows: what is to be done there."""

    plan: GatePlan
    heap_count: int

    def gather(self, batches: Batches) -> Pieces:
        """What was found of a part of the rows, in numbered pieces."""
        with Tally(self.plan) as tally:
            for batch in batches:
                tally.add(batch)
            yield from tally.parts(self.heap_count)

    def combine(self, pieces: Iterable[bytes]) -> bytes:
        """Of pieces, among them all of their numbers, one."""
        return pickle.dumps(combine(self.plan, pieces))


def run_elsewhere(
    checks: Sequence[Check],
    columns: Sequence[Column],
    heap_count: int,
    carry: Callable[[Sequence[str], Elsewhere], Iterable[bytes]],
) -> list[CheckResult]:
    """As `run_on_arrow`. `carry` has it done where the rows are, in the columns asked for, and gives what was combined.
    lakelib's own errors are raised; whatever else comes of it, checks that need rows could not be carried out."""
    plan = plan_checks(checks, columns)
    try:
        pieces = carry(plan.columns, Elsewhere(plan=plan, heap_count=heap_count)) if plan.columns else ()
        found = combine(plan, pieces)
    except LakeError:
        raise
    except Exception as error:
        found = Found(errors=dict.fromkeys(plan.needs, _cause(error)))
    return judge_checks(checks, columns, plan, found)


def _cause(error: Exception) -> str:
    """What a task stumbled over stands below the trace that Spark tells of it."""
    told = str(error).strip() or type(error).__name__
    raised = [line.strip() for line in told.splitlines() if _RAISED.match(line.strip())]
    return raised[-1] if raised else told
