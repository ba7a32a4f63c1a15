"""Use case: a verdict becomes a page that people read."""

from os import PathLike
from pathlib import Path
from uuid import UUID

from lakelib.catalog import commits, verdicts
from lakelib.errors import NotFoundError
from lakelib.gates.report import report_html
from lakelib.ops.runtime import Runtime
from lakelib.storage.local_file import write_local_file


def write_report(runtime: Runtime, commit_id: UUID, path: str | PathLike[str]) -> Path:
    """The newest verdict on a commit as one file of HTML; its absolute path. Raises NotFoundError if there is none."""
    commit = commits.load_commit(runtime.catalog, commit_id)
    verdict = verdicts.find_verdict(runtime.catalog, commit_id)
    if verdict is None:
        raise NotFoundError(
            f"No gate has judged commit {commit_id} of {commit['table_name']}.",
            kind="verdict_not_found",
            remedy="Judge it with staged.judge(gate).",
        )
    page = report_html(
        verdict, table=commit["table_name"], state=commit["state"], engine=commit["properties"].get("engine", "")
    )
    return write_local_file(path, page)
