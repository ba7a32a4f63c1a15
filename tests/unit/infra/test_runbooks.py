"""The runbooks say what can be done: their commands exist, their links lead somewhere, and each has all its parts."""

import re
import shlex
from pathlib import Path

import click
import pytest
import typer

from lakelib.cli.main import make_app

PROJECT = Path(__file__).resolve().parents[3]
FOLDER = PROJECT / "infra" / "runbooks"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
PARTS = ("How it shows.", "What is safe.", "What to do", "How to verify.")
LAKE = typer.main.get_command(make_app())


def commands() -> list[str]:
    """Each call of `lake` in a code block or between backticks."""
    text = "\n".join(path.read_text() for path in FOLDER.glob("*.md"))
    found = re.findall(r"\.venv/bin/lake (.+?)(?:`|$)", re.sub(r"`([^`\n]*)\n\s*([^`\n]*)`", r"`\1 \2`", text), re.M)
    return sorted({command.strip() for command in found})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_parts_in_order(page: Path) -> None:
    assert re.findall(r"^\*\*(.+?)\*\*", page.read_text(), re.M) == list(PARTS)


def test_every_page_is_in_the_list_and_every_link_leads_to_a_page() -> None:
    links = {path: set(re.findall(r"\]\((\S+?\.md)\)", path.read_text())) for path in FOLDER.glob("*.md")}
    assert links[FOLDER / "README.md"] == {page.name for page in PAGES}
    assert {link for found in links.values() for link in found if not (FOLDER / link).is_file()} == set()


@pytest.mark.parametrize("command", commands())
def test_a_command_is_one_that_lake_takes(command: str) -> None:
    words = shlex.split(command)
    place: click.Command = LAKE
    context = click.Context(place)
    while isinstance(place, click.Group):
        name = words.pop(0)
        assert name in place.commands, command
        place = place.commands[name]
        context = click.Context(place, parent=context, info_name=name)
    place.parse_args(context, words)


def test_targets_of_make_exist() -> None:
    text = "\n".join(path.read_text() for path in FOLDER.glob("*.md"))
    targets = set(re.findall(r"^([a-z0-9]+):", (PROJECT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"\bmake (up|down|status|demo|e2e|\w+)`", text)) <= targets
