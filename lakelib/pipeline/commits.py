"""Jobs that decide about staged commits: what they are told on their command lines."""

import argparse
from uuid import UUID


def add_commits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--commit",
        dest="commits",
        action="append",
        required=True,
        type=_commit_id,
        metavar="ID",
        help="a staged commit; may be repeated",
    )


def _commit_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a commit's id") from None


def read_commits(given: argparse.Namespace) -> tuple[UUID, ...]:
    """Each once, in the order given."""
    return tuple(dict.fromkeys(given.commits))
