"""The arguments that several commands of `lake` take, and what their texts mean."""

import csv
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from lakelib.cli.command import wrong_usage
from lakelib.errors import InvalidInputError
from lakelib.plan.meant import parse_at, parse_commit_id
from lakelib.specs.texts import parse_duration

NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""How NULL is written as the value of a partition column; as in the folders of partitions."""


def option(*names: str, metavar: str, help: str, panel: str | None = None) -> Any:
    """An option of which the help says in words what it is without."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, show_default=False)


TableName = Annotated[str, typer.Argument(metavar="TABLE", help="namespace.table", show_default=False)]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="WHEN",
        help="A snapshot id, tag:NAME, or a moment such as 2026-11-18T10:30 (UTC if no zone is given).",
        show_default=False,
    ),
]
Where = Annotated[
    str | None,
    typer.Option("--where", "-w", metavar="SQL", help="Only rows for which this is true.", show_default=False),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="NAMES",
        help='Names with commas between; a name with a comma in "quotes".',
        show_default=False,
    ),
]
LENGTH = 'A length of time such as "7d" or "12h".'
Grace = Annotated[
    str | None,
    option("--grace", metavar="LENGTH", help="So long after an expiry its files are deleted. (1h)"),
]
OrphansOlderThan = Annotated[
    str | None,
    option(
        "--orphans-older-than",
        metavar="LENGTH",
        help="Files that no commit names, and tables that were dropped, are given up from this age on: longer than the"
        " longest write, whose files look the same until it is staged. (1d)",
    ),
]
GraceOfOrphans = Annotated[
    str | None, typer.Option("--grace", metavar="LENGTH", help="As --orphans-older-than.", hidden=True)
]
"""How that was said at first."""
CommitIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="COMMIT…", help="Ids of commits, or their first digits.", show_default=False),
]
MoreCommitIds = Annotated[
    list[str] | None,
    typer.Option(
        "--commit", metavar="ID", help="The id of a commit, or its first digits; may be repeated.", show_default=False
    ),
]
CommitId = Annotated[
    str, typer.Argument(metavar="COMMIT", help="The id of a commit, or its first digits.", show_default=False)
]
Key = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="APP:VERSION",
        help="Names this piece of work: what was done under the same key is not done again.",
        show_default=False,
    ),
]
NewLake = Annotated[
    bool, typer.Option("--new-lake", help="Where there is no lake yet, make one: in ./.lake, unless told.")
]
MergeSchema = Annotated[bool, typer.Option("--merge-schema", help="New columns and wider types extend the table.")]
ExplicitCast = Annotated[bool, typer.Option("--explicit-cast", help="Values become the table's types if each fits.")]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="NAME=VALUE", help="Kept with the commit; may be repeated.", show_default=False),
]
Really = Annotated[
    bool,
    typer.Option(
        "--yes/--dry-run", "-y", help="Do it, rather than only tell what would be done.", show_default="--dry-run"
    ),
]


_NAMES = 'Names with commas between; a name with a comma in "quotes".'
Names = Annotated[list[str] | None, typer.Option(metavar="NAMES", help=_NAMES, show_default=False)]
Buckets = Annotated[
    str | None, typer.Option(metavar="N", help="A power of two, dynamic or postpone. (dynamic)", show_default=False)
]
Merge = Annotated[
    str | None,
    typer.Option(
        metavar="ENGINE",
        help="How versions of a key become one row: deduplicate, first_row, or JSON that describes partial_update or"
        " aggregate. (deduplicate)",
        show_default=False,
    ),
]
ReallyIfAsked = Annotated[
    bool | None,
    typer.Option(
        "--yes/--dry-run",
        "-y",
        help="Do it, or only tell what would be done. An overwrite is a dry run until it is told.",
        show_default=False,
    ),
]


def read_at(text: str | None, option: str = "--at") -> int | str | datetime | None:
    """What lakelib takes as `at`."""
    try:
        return None if text is None else parse_at(text)
    except InvalidInputError:
        wrong_usage(f"{option} {text!r} is no snapshot id, no tag:NAME and no moment such as 2026-11-18T10:30.")


def read_columns(texts: Sequence[str] | None) -> list[str] | None:
    return read_names(texts, "--columns") if texts else None


def read_buckets(text: str | None) -> int | str | None:
    """What lakelib takes as `buckets`."""
    return int(text) if text is not None and text.isdecimal() else text


def read_merge(text: str | None) -> Any:
    """What lakelib takes as `merge`."""
    if text is None or not text.lstrip().startswith("{"):
        return text or "deduplicate"
    try:
        return json.loads(text)
    except ValueError as error:
        wrong_usage(f"--merge is no JSON: {error}.")


def read_names(texts: Sequence[str] | None, option: str) -> list[str]:
    names = [name.strip() for text in texts or () for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(names):
        wrong_usage(f"{option} {','.join(texts or ())!r} has an empty name.")
    return names


def read_pairs(texts: Sequence[str], what: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            wrong_usage(f"{what} {text!r} is not NAME=VALUE.")
        if name in pairs:
            wrong_usage(f"{what} names {name!r} twice.")
        pairs[name] = value
    return pairs


def read_parameters(texts: Sequence[str]) -> dict[str, Any]:
    """The values of `day=2026-11-18 n:int=3`: texts, or of the type that is named; `n:void=` is NULL."""
    values: dict[str, Any] = {}
    for said, text in read_pairs(texts, "--param").items():
        name, colon, kind = said.partition(":")
        if name in values:
            wrong_usage(f"--param names {name!r} twice.")
        values[name] = _typed(kind.strip().lower(), text, said) if colon else text
    return values


def _typed(kind: str, text: str, said: str) -> Any:
    from lakelib.rows.values import python_value, raw_value  # they take long to load

    if kind == "void":
        return None
    try:
        return python_value(kind, raw_value(kind, text))
    except InvalidInputError as error:
        wrong_usage(f"--param {said}={text}: {error}")


def read_partition(texts: Sequence[str]) -> dict[str, str | None]:
    """The values of `dt=2026-11-18 region=eu`."""
    pairs = read_pairs(texts, "The partition's value")
    return {name: None if value == NULL_VALUE else value for name, value in pairs.items()}


def read_orphans_age(older_than: str | None, grace: str | None) -> dict[str, Any]:
    """The keyword of the library; none where nothing is said."""
    if older_than is not None and grace is not None:
        wrong_usage("--grace is an earlier name of --orphans-older-than here: give one")
    age = read_duration(older_than, "--orphans-older-than") if grace is None else read_duration(grace, "--grace")
    return {} if age is None else {"grace": age}


def read_duration(text: str | None, option: str) -> timedelta | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        wrong_usage(f"{option} {text!r} is not {error}")


def read_commit_id(text: str) -> UUID | str:
    """A commit's id, or how it begins."""
    found = parse_commit_id(text)
    if found is None:
        wrong_usage(f"{text!r} is not a commit's id, nor the first digits of one; `lake commits` lists them.")
    return found


def read_commit_ids(*texts: Sequence[str] | None) -> tuple[UUID | str, ...]:
    """Each once, in the order given."""
    found = tuple(dict.fromkeys(read_commit_id(text) for some in texts for text in some or ()))
    if not found:
        wrong_usage("Name commits: COMMIT…, or --commit ID.")
    return found


def read_key(text: str) -> tuple[str, int]:
    """The application and the version of APP:VERSION."""
    application, _, version = text.rpartition(":")
    if not application or not (version.isascii() and version.isdecimal()):
        wrong_usage(f"--idempotency-key {text!r} is not APP:VERSION with a whole number as its version.")
    return application, int(version)


def read_choice(text: Any, choices: Sequence[str], option: str) -> str:
    if text not in choices:
        wrong_usage(f"{option} {text!r} is none of {', '.join(choices)}.")
    return str(text)


def check_folder(option: str, file: Path | None) -> Path | None:
    """The file that is to be written."""
    if file is not None and not file.absolute().parent.is_dir():
        wrong_usage(f"the folder of {option} {file} does not exist")
    return file
