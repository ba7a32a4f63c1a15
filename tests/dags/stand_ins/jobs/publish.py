"""Stands in for jobs/publish.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import told

from jobs.common.publishing import parse_publish

job = parse_publish(None)
commits = [str(commit) for commit in job.commits]
told.note("publish", commits=commits, by=job.by, reason=job.reason, server=told.server_of(job.surroundings))
published = [{"table": "a.days", "commit": commit, "snapshot": int(commit[:4], 16)} for commit in commits]
sys.exit(told.answer(job.surroundings.result, published=published))
