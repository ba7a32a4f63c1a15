"""A command is there without the others: which module has it is known by its name."""

from importlib import import_module

import pytest
import typer

from lakelib.cli.main import _PARTS, _command_in


def test_each_module_of_commands_adds_those_that_it_is_known_by() -> None:
    for part, names in _PARTS.items():
        app = typer.Typer()
        import_module(f"lakelib.cli.{part}").add_to(app)
        added = [each.name for each in app.registered_commands]
        added += [each.name or each.typer_instance.info.name for each in app.registered_groups if each.typer_instance]
        assert tuple(added) == names


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["sql", "--help"], "sql"),
        (["--json", "tables", "sql"], "tables"),
        (["--warehouse", "sql", "tag", "list"], "tag"),
        (["--warehouse=sql", "--catalog", "tables", "scan"], "scan"),
        (["--help", "sql"], None),
        (["sqll"], None),
        (["--warehouse"], None),
        ([], None),
    ],
)
def test_the_command_is_found_among_the_words(words: list[str], command: str | None) -> None:
    assert _command_in(words) == command
