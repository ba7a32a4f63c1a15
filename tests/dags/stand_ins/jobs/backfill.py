"""Stands in for jobs/backfill.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import told

job = told.understood("backfill", sys.argv[1:])
assert job.report is not None
application, version = job.key
staged = []
for table, partition in job.items:
    key = [f"{application}/{partition}", version]
    commit = told.commit_of((table, key))
    call = told.note("ingest", table=table, commit=commit, partition=partition, key=key, downstream=job.downstream)
    outcome = told.outcome_of(partition, call)
    if outcome.isdecimal():
        sys.exit(told.answer(job.surroundings.result, int(outcome)))
    staged.append(
        {
            "table": table,
            "partition": partition,
            "outcome": outcome,
            "commit": None if outcome == "empty" else commit,
            "state": {"reject": "rejected", "empty": None}.get(outcome, "staged"),
            "failures": ["amount is there (critical): 3 of 400 rows"] * (outcome == "reject"),
        }
    )
job.report.write_text("<p>a backfill</p>")
sys.exit(told.answer(job.surroundings.result, staged=staged, left_out=[]))
