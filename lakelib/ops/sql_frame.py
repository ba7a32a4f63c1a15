"""Use case: a query over tables of the lake, carried out by Spark.

It is planned as one that is carried out here: all tables at the heads of one moment, of each what the query can make
use of. What is read of a table is a data frame, and over them runs the query. Their snapshots are held for a day.
"""

from collections.abc import Mapping
from typing import Any

from lakelib.ops import changes, frame, read
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql import look_up, plan_statement
from lakelib.ops.sql_plan import Known, Plan
from lakelib.plan.sql_on_spark import translate_for_spark
from lakelib.plan.sql_statement import parse_statement
from lakelib.work import engines


def query_frame(runtime: Runtime, session: Any, text: str, values: Mapping[str, Any]) -> Any:
    """The rows as a Spark data frame, read when Spark is told to; of EXPLAIN, Spark's plan. Raises InvalidInputError
    for what is no SQL, or none that is known, NotFoundError for tables and snapshots that are not there."""
    engines.require_spark()
    statement = parse_statement(text, values)
    plan = plan_statement(runtime, statement, look_up(runtime, statement.references), translate=translate_for_spark)
    frames = {key: _frame(runtime, session, each) for key, each in plan.plans.items()}
    asked = plan.query
    if plan.is_explained:
        return engines.run_query(session, f"EXPLAIN {asked.sql}", frames, asked.bound, ())
    return engines.run_query(session, asked.sql, frames, asked.bound, [name for name, _ in asked.columns])


def _frame(runtime: Runtime, session: Any, plan: Plan) -> Any:
    match plan:
        case read.ScanPlan():
            return frame.read_frame(runtime, plan, session)
        case changes.ChangesPlan():
            return changes.read_frame(runtime, plan, session)
        case Known(rows=rows):
            return engines.known_frame(session, rows)
