"""The job maintain: its arguments, what it does in their order, and what it tells."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import lakelib
from jobs.common.outcome import Failed, explain_failure
from jobs.common.parser import Surroundings, add_surroundings, make_parser, read_surroundings
from jobs.common.selection import Selection, add_selection, find_tables, read_selection
from lakelib import Lake, LakeError
from lakelib.model.upkeep import ExpireResult, VacuumResult, describe_holdings
from lakelib.ops import expire as expiry
from lakelib.ops import vacuum as vacuuming
from lakelib.specs.durations import parse_duration

DESCRIPTION = """\
Forgets old snapshots (--expire) and deletes the files that nothing needs any more (--vacuum). Tags, readers, and
commits that may still be published keep what they need. A vacuum is of the whole lake, whatever tables are named.
Runs beside readers and writers; safe to repeat.

  python -m jobs.maintain --all --expire --vacuum --dry-run
  python -m jobs.maintain shop.orders shop.payments --expire --keep-last 30 --older-than 7d"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainArguments:
    selection: Selection
    expire: dict[str, Any] | None
    """The keywords of Table.expire; None: nothing expires."""
    vacuum: dict[str, Any] | None
    """The keywords of Lake.vacuum; None: nothing is deleted."""
    dry_run: bool
    surroundings: Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """What was done; where something failed, the rest was done all the same."""

    dry_run: bool
    expired: tuple[ExpireResult, ...]
    failed: tuple[tuple[str, Failed], ...]
    """Tables with what went wrong."""
    vacuum: VacuumResult | None
    vacuum_failed: Failed | None = None

    @property
    def exit_code(self) -> int:
        """That of the first failure."""
        first = self._first_failure()
        if first is not None:
            return first.exit_code
        return 7 if self.vacuum is not None and self.vacuum.failed else 0

    def facts(self) -> dict[str, Any]:
        tables = [_expire_facts(result) for result in self.expired]
        tables += [{"table": table, **failed.facts()} for table, failed in self.failed]
        facts: dict[str, Any] = {"dry_run": self.dry_run, "tables": tables}
        if self.vacuum is not None:
            facts["vacuum"] = _vacuum_facts(self.vacuum)
        first = self._first_failure()
        return facts if first is None else facts | first.facts()

    def lines(self) -> Iterator[str]:
        for result in self.expired:
            yield from repr(result).strip("<>").split("\n  ")
        if self.vacuum is not None:
            yield from repr(self.vacuum).strip("<>").split("\n  ")
        for table, failed in self.failed:
            yield f"failed      {table}"
            yield from failed.lines()
        if self.vacuum_failed is not None:
            yield from self.vacuum_failed.lines()

    def _first_failure(self) -> Failed | None:
        return self.failed[0][1] if self.failed else self.vacuum_failed


def parse_maintain(arguments: Sequence[str] | None) -> MaintainArguments:
    """Ends the process with exit code 2, and says why, if the arguments are wrong."""
    parser = make_parser(DESCRIPTION)
    add_selection(parser)
    _add_work(parser)
    add_surroundings(parser, master="taken for the sake of other jobs: this one runs in process")
    given = parser.parse_args(arguments)
    if not (given.expire or given.vacuum):
        parser.error("give --expire, --vacuum, or both")
    rules = {
        "keep_last": given.keep_last,
        "older_than": given.older_than,
        "staged_older_than": given.staged_older_than,
        "grace": given.grace,
    }
    if not given.expire and (given.keep_last or given.older_than):
        parser.error("--keep-last and --older-than are for --expire")
    return MaintainArguments(
        selection=read_selection(parser, given, required=given.expire),
        expire=rules if given.expire else None,
        vacuum={"grace": given.orphans_older_than, "orphans": given.orphans} if given.vacuum else None,
        dry_run=given.dry_run,
        surroundings=read_surroundings(parser, given),
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("work", "Lengths of time are written as 30s, 10m, 6h, 7d, 2w or '1h 30m'.")
    group.add_argument("--expire", action="store_true", help="forget snapshots")
    group.add_argument("--vacuum", action="store_true", help="delete files, after the expiry if both are given")
    group.add_argument("--dry-run", action="store_true", help="say what would go, each file by name; change nothing")
    group.add_argument(
        "--keep-last", type=int, metavar="COUNT", help="snapshots that stay whatever their age (10 if no rule is given)"
    )
    group.add_argument(
        "--older-than",
        type=_length,
        metavar="LENGTH",
        help="snapshots stay that were superseded less long ago (7d if no rule is given)",
    )
    group.add_argument(
        "--staged-older-than",
        type=_length,
        metavar="LENGTH",
        default=expiry.DEFAULT_STAGED_OLDER_THAN,
        help="commits that were staged or rejected longer ago are given up (7d)",
    )
    group.add_argument(
        "--grace",
        type=_length,
        metavar="LENGTH",
        default=expiry.DEFAULT_GRACE,
        help="so long after an expiry its files are deleted (1h)",
    )
    group.add_argument(
        "--orphans-older-than",
        type=_length,
        metavar="LENGTH",
        default=vacuuming.DEFAULT_GRACE,
        help="files that no commit names, and tables that were dropped, go if they are older (1d): longer than the"
        " longest write, whose files look the same until it is staged",
    )
    group.add_argument(
        "--orphans",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether the storage is searched for files that no commit names (yes)",
    )


def _length(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not {error}") from None


def maintain(job: MaintainArguments) -> Maintained:
    """Table after table, whatever fails; then the vacuum."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        expired: list[ExpireResult] = []
        failed: list[tuple[str, Failed]] = []
        for name in find_tables(lake, job.selection) if job.expire is not None else ():
            _tell_progress(around.progress, f"expire {name}")
            try:
                expired.append(lake.table(name).expire(**job.expire or {}, dry_run=job.dry_run))
            except LakeError as error:
                failed.append((name, explain_failure(error)))
        vacuum, vacuum_failed = _vacuum(lake, job)
        return Maintained(
            dry_run=job.dry_run,
            expired=tuple(expired),
            failed=tuple(failed),
            vacuum=vacuum,
            vacuum_failed=vacuum_failed,
        )


def _vacuum(lake: Lake, job: MaintainArguments) -> tuple[VacuumResult | None, Failed | None]:
    if job.vacuum is None:
        return None, None
    _tell_progress(job.surroundings.progress, "vacuum")
    tell: Callable[[str], None] | None = _name_file if job.dry_run else None
    try:
        return lake.vacuum(dry_run=job.dry_run, tell=tell, **job.vacuum), None
    except LakeError as error:
        return None, explain_failure(error)


def _name_file(uri: str) -> None:
    print(f"would delete {uri}")


def _tell_progress(wanted: bool | None, what: str) -> None:
    if sys.stderr.isatty() if wanted is None else wanted:
        print(what, file=sys.stderr, flush=True)


def _expire_facts(result: ExpireResult) -> dict[str, Any]:
    return {
        "table": result.table,
        "snapshots": len(result.snapshots),
        "kept_back": {str(each.hold): len(each.snapshots) for each in result.holdings},
        "held": list(describe_holdings(result.holdings)),
        "commits": result.commits,
        "tags": len(result.tags),
        "leases": result.leases,
        "files": result.files,
        "bytes": result.size_bytes,
        "oldest": result.oldest_id,
    }


def _vacuum_facts(result: VacuumResult) -> dict[str, Any]:
    return {
        "files": result.files,
        "bytes": result.size_bytes,
        "orphans": result.orphans,
        "orphan_bytes": result.orphan_bytes,
        "uploads": result.uploads,
        "dropped_tables": list(result.dropped_tables),
        "waiting": result.waiting,
        "failed": [{"file": each.uri, "reason": each.reason} for each in result.failed[:100]],
        "passed_over": list(result.passed_over),
    }
