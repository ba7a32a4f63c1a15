"""Stands in for jobs/publish.py: what it publishes is a row of no partition, and what it is told to be."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pyarrow as pa
import told

import lakelib
from lakelib.ops.provide import provide_table
from lakelib.specs.table_spec import load_spec

job = told.understood("publish", sys.argv[1:])
commits = [str(commit) for commit in job.commits]
told.note("publish", commits=commits, by=job.by, reason=job.reason, server=told.server_of(job.surroundings))
specs = {spec.table: spec for spec in map(load_spec, job.specs)}
tables = [told.table_of(commit) or next(iter(specs)) for commit in commits]
snapshots = []
with lakelib.connect() as lake:
    for name in tables:
        provide_table(lake.runtime, specs[name])
        table = lake.table(name)
        row = pa.Table.from_pylist([dict.fromkeys(table.primary_key, 1)], schema=table.schema)
        snapshots.append(table.append(row).id)
approval = {} if job.by is None else {"approved_by": job.by, "approval_reason": job.reason}
published = [
    {"table": table, "commit": commit, "snapshot": snapshot, **approval}
    for table, commit, snapshot in zip(tables, commits, snapshots, strict=True)
]
sys.exit(told.answer(job.surroundings.result, published=published))
