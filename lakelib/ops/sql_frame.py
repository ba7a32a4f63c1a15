"""Part of queries: how Spark carries them out. What is read of each table is a data frame, and over them runs the
query. The tables' snapshots are held for a day."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakelib.ops import changes, frame, read
from lakelib.ops.hold import hold_for_spark
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_plan import Known, KnownFrame, Plan, QueryPlan
from lakelib.plan.asked import AskedQuery
from lakelib.plan.local_types import VOID
from lakelib.rows.types import type_text
from lakelib.work import engines


def frame_of(runtime: Runtime, plan: QueryPlan) -> Any:
    """The rows as a Spark data frame, read when Spark is told to. Raises InvalidInputError with what Spark has against
    the query."""
    query = plan.query
    frame = engines.run_query(runtime.session, query.sql, _frames(runtime, plan), query.bound, query.columns)
    return frame if plan.most is None else frame.limit(plan.most)


def explain_frame(runtime: Runtime, plan: QueryPlan) -> str:
    """How Spark would carry it out."""
    text = f"EXPLAIN {plan.query.sql}"
    found = engines.run_query(runtime.session, text, _frames(runtime, plan), plan.query.bound, ())
    return str(found.collect()[0][0])


def known_query(runtime: Runtime, plan: QueryPlan) -> AskedQuery:
    """The query with the names and types of its columns, which Spark alone may know. Raises InvalidInputError for types
    that no table can have."""
    if plan.query.types:
        return plan.query
    schema = engines.open_source(frame_of(runtime, plan)).schema
    types = tuple(VOID if pa.types.is_null(field.type) else type_text(field.type) for field in schema)
    columns = tuple((name, "string" if kind == VOID else kind) for name, kind in zip(schema.names, types, strict=True))
    return replace(plan.query, columns=columns, types=types)


def _frames(runtime: Runtime, plan: QueryPlan) -> dict[str, Any]:
    hold_for_spark(runtime, *(each for each in plan.plans.values() if isinstance(each, read.ScanPlan)))
    return {key: _frame(runtime, each) for key, each in plan.plans.items()}


def _frame(runtime: Runtime, plan: Plan) -> Any:
    match plan:
        case read.ScanPlan():
            return frame.held_frame(runtime, plan, runtime.session)
        case changes.ChangesPlan():
            return changes.read_frame(runtime, plan, runtime.session)
        case Known(rows=rows):
            return engines.known_frame(runtime.session, rows)
        case KnownFrame(frame=given):
            return given
