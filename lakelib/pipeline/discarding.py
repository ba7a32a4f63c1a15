"""Staged commits end without being published."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import lakelib
from lakelib.pipeline.commits import add_commits, read_commits
from lakelib.pipeline.parser import Surroundings, add_surroundings, make_parser, read_surroundings

DESCRIPTION = """\
Rejects staged commits: they can be looked at until they expire, and nobody publishes them but a person by name and
reason. One that is rejected already stays so.

  python -m jobs.discard --commit 0b1c… --reason 'a delivery of the wrong day'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardArguments:
    commits: tuple[UUID, ...]
    reason: str
    surroundings: Surroundings


def parse_discard(arguments: Sequence[str] | None) -> DiscardArguments:
    """Ends the process with exit code 2, and says why, if the arguments are wrong."""
    parser = make_parser(DESCRIPTION)
    add_commits(parser)
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why; kept with the commits")
    add_surroundings(parser, master="of no use here: nothing runs on Spark")
    given = parser.parse_args(arguments)
    return DiscardArguments(
        commits=read_commits(given), reason=given.reason, surroundings=read_surroundings(parser, given)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardedCommits:
    discarded: tuple[tuple[str, UUID], ...]
    """Tables and commits."""
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        return {"discarded": [{"table": table, "commit": str(commit)} for table, commit in self.discarded]}

    def lines(self) -> Iterator[str]:
        for table, commit in self.discarded:
            yield f"discarded   commit {commit} of {table}"


def discard(job: DiscardArguments) -> DiscardedCommits:
    """Raises ConflictError for a commit that was published or has expired."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        commits = [lake.staged(commit_id) for commit_id in job.commits]
        for commit in commits:
            commit.reject(job.reason)
        return DiscardedCommits(discarded=tuple((commit.table_name, commit.id) for commit in commits))
