"""What the maintenance DAGs tell their jobs. Pure, but for `existing_tables`."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from lakelib.specs.table_spec import TableSpec
from lakelib.specs.texts import format_duration

APPLY_VARIABLE = "LAKE_MAINTENANCE"
"""Set to `apply` where scheduled runs of maintain are to delete; else they only say what they would delete."""

Batch = dict[str, list[str]]
"""`arguments` of one job."""


def existing_tables() -> set[str]:
    """The tables of the lake. A spec may be there before its first run."""
    import lakelib

    with lakelib.connect() as lake:
        return {f"{namespace}.{name}" for namespace in lake.namespaces() for name in lake.tables(namespace)}


def batch_arguments(context: object, batch: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return batch["arguments"]


def compact_batches(
    params: Mapping[str, Any], specs: Iterable[TableSpec], existing: Collection[str], *, scheduled: bool
) -> list[Batch]:
    """A scheduled run goes by the specs, another one by its form."""
    if not scheduled:
        return [_batch([*(["--full"] if params["full"] else []), *_chosen(params)])]
    wanted = [(spec.table, spec.maintenance.compact) for spec in specs if spec.table in existing]
    due = [table for table, compact in wanted if compact is not None and not compact.full]
    full = [table for table, compact in wanted if compact is not None and compact.full]
    return [_batch([*how, *_named(tables)]) for how, tables in (([], due), (["--full"], full)) if tables]


def maintain_batches(
    params: Mapping[str, Any], specs: Iterable[TableSpec], existing: Collection[str], *, scheduled: bool
) -> list[Batch]:
    """Tables of the same rules expire together; then the files are deleted that nothing needs any more."""
    meant = ["--dry-run"] if is_dry_run(params, scheduled=scheduled) else ["--yes"]
    rules: dict[tuple[int | None, timedelta | None], list[str]] = defaultdict(list)
    for spec in specs:
        expire = spec.maintenance.expire
        if expire is not None and spec.table in existing and _is_chosen(params, spec.table):
            rules[expire.keep_last, expire.older_than].append(spec.table)
    expiring = [["--expire", *_rule_arguments(*rule), *meant, *_named(tables)] for rule, tables in rules.items()]
    vacuuming = [["--vacuum", *meant]]
    return [_batch(one) for one in (expiring if params["expire"] else []) + (vacuuming if params["vacuum"] else [])]


def is_dry_run(params: Mapping[str, Any], *, scheduled: bool) -> bool:
    """Nobody looks at the form of a scheduled run: an environment says in so many words that it deletes."""
    return os.environ.get(APPLY_VARIABLE) != "apply" if scheduled else bool(params["dry_run"])


def _chosen(params: Mapping[str, Any]) -> list[str]:
    if params["tables"]:
        return _named(params["tables"])
    return [f"--namespace={params['namespace']}"] if params["namespace"] else ["--all"]


def _named(tables: Sequence[str]) -> list[str]:
    """Behind `--` no name is an option, whatever it begins with. They come last."""
    return ["--", *tables]


def _is_chosen(params: Mapping[str, Any], table: str) -> bool:
    if params["tables"]:
        return table in params["tables"]
    return not params["namespace"] or table.partition(".")[0] == params["namespace"]


def _rule_arguments(keep_last: int | None, older_than: timedelta | None) -> list[str]:
    count = [] if keep_last is None else ["--keep-last", str(keep_last)]
    return count + ([] if older_than is None else ["--older-than", format_duration(older_than)])


def _batch(arguments: Sequence[str]) -> Batch:
    return {"arguments": list(arguments)}
