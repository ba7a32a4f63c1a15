"""Stands in for jobs/ingest.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import told

from lakelib.specs.table_spec import load_spec

job = told.understood("ingest", sys.argv[1:])
assert job.report is not None
key = list(job.key)
server = told.server_of(job.surroundings)
call = told.note("ingest", partition=job.partition, key=key, at=dict(job.at), server=server)
outcome = told.outcome_of(job.partition, call)
table = load_spec(job.spec).table
if outcome.isdecimal():
    sys.exit(told.answer(job.surroundings.result, int(outcome)))
job.report.write_text(f"<p>{outcome}</p>")
facts = {
    "table": table,
    "partition": job.partition,
    "outcome": outcome,
    "commit": None if outcome == "empty" else told.commit_of((table, key)),
    "state": {"reject": "rejected", "empty": None}.get(outcome, "staged"),
    "report": str(job.report),
    "failures": ["amount is there (critical): 3 of 400 rows; such as id=17 `{{ x }}` [y](z)"] * (outcome == "reject"),
    "rows_in": 3,
}
sys.exit(told.answer(job.surroundings.result, **facts))
