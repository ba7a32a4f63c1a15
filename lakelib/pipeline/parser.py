"""What the command lines of all jobs have in common. Standard library only: wrong arguments are said at once."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EPILOG = """\
The exit code says who has to act: 0 done, 2 wrong arguments, 3 wrong input, 4 something is not there, 5 a conflict with
another commit, 6 rejected by the gate, 7 try again (safe with the same --idempotency-key), 8 stored data is damaged,
1 anything else. The folder docs has more of it in jobs.md."""


REMOTE_VARIABLE = "SPARK_REMOTE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The lake that a job works on, where it runs, and how it tells of itself."""

    warehouse: str | None
    catalog: str | None = field(repr=False)
    master: str | None
    remote: str | None = field(repr=False)
    """The address of a Spark Connect server, which may hold a token."""
    spark_conf: Mapping[str, str] = field(repr=False)
    """Settings of the session on that server."""
    result: Path | None
    progress: bool | None
    """None: if somebody is watching."""


def make_parser(description: str) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    return _Parser(description=description, epilog=EPILOG, formatter_class=formatter, allow_abbrev=False)


class _Parser(argparse.ArgumentParser):
    """Options are written in full. What is not known is told without its value, which may be a
    secret."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        given, unknown = self.parse_known_args(args, namespace)
        if unknown:
            options = [text.partition("=")[0] for text in unknown if text.startswith("-")]
            self.error(f"unknown arguments: {', '.join(options) or f'{len(unknown)} too many'}")
        return given

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """`--reason=--` has the value `--`, which argparse would drop."""
        if action.option_strings and action.nargs is None:
            (text,) = arg_strings
            value = self._get_value(action, text)
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)


class Once(argparse.Action):
    """An option that may be given once: where one was slipped in, the job does nothing."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option_string} is given twice")
        setattr(namespace, self.dest, values)


def add_surroundings(
    parser: argparse.ArgumentParser,
    *,
    master: str = "Spark's master where spark-submit names none (SPARK_MASTER, else local[*])",
) -> None:
    """`master` is what is said of --master."""
    group = parser.add_argument_group(
        "lake, session, report",
        "The lake is the one that the environment names (LAKE_WAREHOUSE, LAKE_CATALOG, LAKE_HOME).",
    )
    group.add_argument("--warehouse", action=Once, help="in place of LAKE_WAREHOUSE")
    group.add_argument(
        "--catalog", action=Once, help="in place of LAKE_CATALOG; the environment hides passwords, an argument does not"
    )
    group.add_argument("--master", action=Once, help=master)
    group.add_argument(
        "--remote",
        action=Once,
        metavar="sc://HOST:PORT",
        help=f"a Spark Connect server, of which this process is a client ({REMOTE_VARIABLE}, which hides tokens)",
    )
    group.add_argument(
        "--spark-conf",
        action=Once,
        type=Path,
        metavar="FILE",
        help="settings of the session on that server (spark.sql.…), as an object of JSON",
    )
    group.add_argument(
        "--result", action=Once, type=Path, metavar="FILE", help="where to write what was done, or the error, as JSON"
    )
    group.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="tell on stderr how far the work is; on a terminal this is the default",
    )


def read_surroundings(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Surroundings:
    """Ends the process with exit code 2 if the result's folder does not exist."""
    check_folder(parser, "result", given.result)
    if given.master and given.remote:
        parser.error("--master and --remote name two places for one session")
    remote = given.remote or (None if given.master else os.environ.get(REMOTE_VARIABLE) or None)
    if remote is not None and not remote.startswith("sc://"):
        parser.error(f"--remote, or {REMOTE_VARIABLE}, is no address that begins with sc://")
    if given.spark_conf and remote is None:
        # An argument that PySpark would start Spark with, for all to see.
        parser.error(
            "--spark-conf is for a server (--remote): spark-submit and PYSPARK_SUBMIT_ARGS have --properties-file"
        )
    return Surroundings(
        warehouse=given.warehouse,
        catalog=given.catalog,
        master=given.master or (None if remote else os.environ.get("SPARK_MASTER")),
        remote=remote,
        spark_conf=_read_settings(parser, given.spark_conf),
        result=given.result,
        progress=given.progress,
    )


def _read_settings(parser: argparse.ArgumentParser, file: Path | None) -> dict[str, str]:
    """What is in the file is not told: it may be secret."""
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        parser.error(f"--spark-conf {file} cannot be read as JSON")
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        parser.error(f"--spark-conf {file} is no object of names and texts")
    return found


def check_folder(parser: argparse.ArgumentParser, option: str, file: Path | None) -> None:
    if file is not None and not file.absolute().parent.is_dir():
        parser.error(f"the folder of --{option} {file} does not exist")


def read_key(parser: argparse.ArgumentParser, text: str) -> tuple[str, int]:
    """The application and version of APP:VERSION."""
    application, _, version = text.rpartition(":")
    if not application or not (version.isascii() and version.isdecimal()):
        parser.error(f"--idempotency-key {text!r} is not APP:VERSION with a whole number as its version")
    return application, int(version)


def read_pairs(parser: argparse.ArgumentParser, option: str, texts: Sequence[str]) -> dict[str, str]:
    """The names and values of NAME=VALUE texts, each name once."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            parser.error(f"--{option} {text!r} is not NAME=VALUE")
        if name in pairs:
            parser.error(f"--{option} names {name!r} twice")
        pairs[name] = value
    return pairs
