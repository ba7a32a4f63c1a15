"""What a DAG run says about the work that it is to do: its partition, its idempotency key, the snapshots that woke it.

Nothing here parses run ids or dates: a partitioned run has its key, a woken one its events, a manual one its params.
"""

from collections.abc import Mapping
from typing import Any

from lakelib.specs.table_spec import TableSpec

Context = Mapping[str, Any]


def partition_of(context: Context, spec: TableSpec) -> str:
    """The partition key: of the timetable, a backfill or the API, else of the event that woke the run, else of the
    form. Raises InvalidInputError for a key that is none of the table's, ValueError where nobody said one, or where run
    and form say different ones."""
    key, typed = context["dag_run"].partition_key, context["params"].get("partition")
    if key and typed and key != typed:
        raise ValueError(
            f"The run's partition key is {key!r}, and its param `partition` is {typed!r}: trigger it with one of them."
        )
    key = key or _event_key(context) or typed
    if key is None and spec.partition.every == "none":
        key = spec.key_of(context["dag_run"].run_after)
    if key is None:
        raise ValueError(
            f"Nobody said which partition of {spec.table} this run is about. Trigger it with the param `partition`,"
            " or with a partition key."
        )
    return spec.check_key(str(key))


def idempotency_key(context: Context, part: str | None = None) -> str:
    """Names the work of a run, or of a part of it: tries share it, and who clears a task asks for a new one."""
    dag_run = context["dag_run"]
    application = f"airflow/{dag_run.dag_id}/{dag_run.run_id}" + (f"/{part}" if part else "")
    return f"{application}:{1 + clear_number_of(context)}"


def clear_number_of(context: Context) -> int:
    """How often tasks of this run were cleared, together or alone."""
    return context["dag_run"].clear_number or 0


def snapshots_of_events(context: Context) -> dict[str, int]:
    """The snapshots of the tables whose events woke this run; the newest, where one table has several."""
    snapshots: dict[str, int] = {}
    for event in _events(context):
        table, snapshot = str(event.extra["table"]), int(event.extra["snapshot"])
        snapshots[table] = max(snapshot, snapshots.get(table, 0))
    return snapshots


def is_made_already(context: Context, table: str) -> bool:
    """Whether all events that woke this run say that the table was made in the transaction that they tell of. Who
    clears the run wants it made again."""
    events = _events(context)
    return (
        bool(events) and not clear_number_of(context) and all(table in event.extra.get("made", ()) for event in events)
    )


def _event_key(context: Context) -> str | None:
    newest = max(_events(context), key=lambda event: int(event.extra["snapshot"]), default=None)
    return None if newest is None else newest.partition_key


def _events(context: Context) -> list[Any]:
    """Those that an ingest run made. Others, made by hand or by another system, may say nothing of this."""
    events = context.get("triggering_asset_events") or {}
    found = (event for each in events.values() for event in each)
    return [event for event in found if {"table", "snapshot"} <= (event.extra or {}).keys()]
