"""What the ingest job is told on its command line, as a frozen value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakelib.pipeline.parser import (
    Once,
    Surroundings,
    add_surroundings,
    check_folder,
    make_parser,
    read_key,
    read_pairs,
    read_surroundings,
)

DESCRIPTION = """\
Brings one partition of a source to a table, as the table's spec says: makes the table if it is not there, reads the
source, transforms it, stages the rows as a commit, and has the gate judge it. Nobody sees the rows before the commit is
published. Run again with the same key, the job takes up the commit that is there.

  python -m jobs.ingest --spec dags/tables/orders.yaml --partition 2026-11-18 --idempotency-key orders/2026-11-18:1
  spark-submit jobs/ingest.py --spec dags/tables/daily_revenue.yaml --partition 2026-11-18 \\
      --idempotency-key revenue/2026-11-18:1 --at shop.orders=12"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestArguments:
    spec: Path
    partition: str
    key: tuple[str, int]
    at: Mapping[str, str]
    """Snapshots, tags or moments by table."""
    properties: Mapping[str, str]
    report: Path | None
    surroundings: Surroundings


def parse_ingest(arguments: Sequence[str] | None) -> IngestArguments:
    """Ends the process with exit code 2, and says why, if the arguments are wrong."""
    parser = make_parser(DESCRIPTION)
    parser.add_argument("--spec", type=Path, required=True, metavar="FILE", help="the table's spec")
    parser.add_argument(
        "--partition", required=True, metavar="KEY", help="the key of the partition, such as 2026-11-18"
    )
    parser.add_argument(
        "--idempotency-key",
        required=True,
        metavar="APP:VERSION",
        help="names this piece of work: with the same key the job takes up what is there, with another it begins anew",
    )
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="TABLE=SNAPSHOT",
        help="a table that the transform reads, as it was at a snapshot's id or tag:NAME (else as it is when the job"
        " begins); may be repeated",
    )
    parser.add_argument(
        "--property", action="append", default=[], metavar="NAME=VALUE", help="kept with the commit; may be repeated"
    )
    parser.add_argument("--report", action=Once, type=Path, metavar="FILE", help="where to write the verdict as HTML")
    add_surroundings(parser)
    given = parser.parse_args(arguments)
    check_folder(parser, "report", given.report)
    return IngestArguments(
        spec=given.spec,
        partition=given.partition,
        key=read_key(parser, given.idempotency_key),
        at=read_pairs(parser, "at", given.at),
        properties=read_pairs(parser, "property", given.property),
        report=given.report,
        surroundings=read_surroundings(parser, given),
    )
