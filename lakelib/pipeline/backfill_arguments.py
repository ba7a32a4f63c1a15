"""What the backfill job is told on its command line, as a frozen value."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lakelib.pipeline.parser import (
    Once,
    Surroundings,
    add_surroundings,
    check_folder,
    make_parser,
    read_key,
    read_surroundings,
)

DESCRIPTION = """\
Makes partitions of tables anew, as their specs say: commits that are staged and judged on top of each other, in order,
to be published in one transaction (jobs/publish.py, which names them all). With --downstream so are the partitions of
the tables that are made from them, on the rows as they would be then. Nobody sees any of it before. Run again with the
same key, the job takes up what is there.

  python -m jobs.backfill --spec dags/tables/orders.yaml --spec dags/tables/daily_revenue.yaml --downstream \\
      --make shop.orders=2026-11-17 --make shop.orders=2026-11-18 --idempotency-key 'orders anew:1'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillArguments:
    specs: tuple[Path, ...]
    items: tuple[tuple[str, str], ...]
    """Tables and the keys of their partitions, in the order given, each once."""
    key: tuple[str, int]
    downstream: bool
    report: Path | None
    surroundings: Surroundings


def parse_backfill(arguments: Sequence[str] | None) -> BackfillArguments:
    """Ends the process with exit code 2, and says why, if the arguments are wrong."""
    parser = make_parser(DESCRIPTION)
    parser.add_argument(
        "--spec", action="append", required=True, type=Path, metavar="FILE", help="a table's spec; may be repeated"
    )
    parser.add_argument(
        "--make",
        action="append",
        required=True,
        metavar="TABLE=KEY",
        help="a partition of a table, of which there is a --spec; may be repeated, in the order in which they are made",
    )
    parser.add_argument(
        "--downstream",
        action="store_true",
        help="make what comes from them, too, of the tables whose --spec says schedule.after",
    )
    parser.add_argument(
        "--idempotency-key",
        required=True,
        metavar="APP:VERSION",
        help="names this piece of work: with the same key the job takes up what is there, with another it begins anew",
    )
    parser.add_argument(
        "--report", action=Once, type=Path, metavar="FILE", help="where to write what became of each partition, as HTML"
    )
    add_surroundings(parser)
    given = parser.parse_args(arguments)
    check_folder(parser, "report", given.report)
    pairs = [text.partition("=") for text in given.make]
    if not all(table and key for table, _, key in pairs):
        parser.error("--make takes TABLE=KEY, such as shop.orders=2026-11-18")
    return BackfillArguments(
        specs=tuple(given.spec),
        items=tuple(dict.fromkeys((table, key) for table, _, key in pairs)),
        key=read_key(parser, given.idempotency_key),
        downstream=given.downstream,
        report=given.report,
        surroundings=read_surroundings(parser, given),
    )
