"""Stands in for jobs/publish.py: what it publishes is a row of no partition, and what it is told to be."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pyarrow as pa
import told

import lakelib
from jobs.common.publishing import parse_publish
from lakelib.ops.provide import provide_table
from lakelib.specs.table_spec import load_spec

job = parse_publish(None)
commits = [str(commit) for commit in job.commits]
told.note("publish", commits=commits, by=job.by, reason=job.reason, server=told.server_of(job.surroundings))
spec = load_spec(job.specs[0])
with lakelib.connect() as lake:
    provide_table(lake.runtime, spec)
    table = lake.table(spec.table)
    row = pa.Table.from_pylist([dict.fromkeys(table.primary_key, 1)], schema=table.schema)
    snapshots = [table.append(row).id for _ in commits]
pairs = zip(commits, snapshots, strict=True)
approval = {} if job.by is None else {"approved_by": job.by, "approval_reason": job.reason}
published = [{"table": spec.table, "commit": commit, "snapshot": snapshot, **approval} for commit, snapshot in pairs]
sys.exit(told.answer(job.surroundings.result, published=published))
