"""Which tables a job works on: those that are named, those of a namespace, or all."""

import argparse
from dataclasses import dataclass

from lakelib import Lake


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One of the three."""

    tables: tuple[str, ...]
    namespace: str | None
    all: bool

    @property
    def is_made(self) -> bool:
        return bool(self.tables or self.namespace or self.all)


def add_selection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tables", "Tables by name, or one of these.")
    group.add_argument("tables", nargs="*", metavar="TABLE", help="namespace.table")
    group.add_argument("--namespace", metavar="NAMESPACE", help="all tables of a namespace")
    group.add_argument("--all", action="store_true", help="all tables of the lake")


def read_selection(parser: argparse.ArgumentParser, given: argparse.Namespace, *, required: bool = True) -> Selection:
    """Ends the process with exit code 2 unless the tables are said in one way."""
    found = Selection(tables=tuple(dict.fromkeys(given.tables)), namespace=given.namespace, all=given.all)
    ways = sum((bool(found.tables), found.namespace is not None, found.all))
    if ways > 1 or (required and ways == 0):
        parser.error("give tables by name, or --namespace NAMESPACE, or --all")
    return found


def find_tables(lake: Lake, selection: Selection) -> list[str]:
    """Their names. Raises NotFoundError if there is no such namespace; whether named tables are there shows later."""
    if selection.tables:
        return list(selection.tables)
    namespaces = lake.namespaces() if selection.namespace is None else [selection.namespace]
    return [f"{namespace}.{name}" for namespace in namespaces for name in lake.tables(namespace)]
