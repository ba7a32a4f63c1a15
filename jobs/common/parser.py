"""What the command lines of all jobs have in common. Standard library only: wrong arguments are said at once."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EPILOG = """\
The exit code says who has to act: 0 done, 2 wrong arguments, 3 wrong input, 4 something is not there, 5 a conflict with
another commit, 6 rejected by the gate, 7 try again (safe with the same --idempotency-key), 8 stored data is damaged,
1 anything else. The folder docs has more of it in jobs.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The lake that a job works on, where it runs, and how it tells of itself."""

    warehouse: str | None
    catalog: str | None = field(repr=False)
    master: str | None
    result: Path | None
    progress: bool | None
    """None: if somebody is watching."""


def make_parser(description: str) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    return _Parser(description=description, epilog=EPILOG, formatter_class=formatter, allow_abbrev=False)


class _Parser(argparse.ArgumentParser):
    """Options are written in full. What is not known is told without its value, which may be a
    secret."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:
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
    group.add_argument("--master", help=master)
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
    return Surroundings(
        warehouse=given.warehouse,
        catalog=given.catalog,
        master=given.master or os.environ.get("SPARK_MASTER"),
        result=given.result,
        progress=given.progress,
    )


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
