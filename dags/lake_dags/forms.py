"""What may be written into the forms of DAGs, as JSON schemas. The API and each task go by them, too."""

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Param

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,127}"
"""Of a namespace, or of a table in it."""
END = r"$(?!\n)"
"""The end of a text in Python and in browsers; for Python alone `$` is before a last line break, too."""


def tables_param(examples: Sequence[str], **more: Any) -> Param:
    """Names of tables; nothing that a program could take for an option."""
    return Param(
        [],
        type="array",
        items={"type": "string", "pattern": rf"^{_NAME}\.{_NAME}{END}"},
        examples=list(examples),
        **more,
    )


def namespace_param() -> Param:
    return Param(None, type=["null", "string"], pattern=rf"^{_NAME}{END}")


def day_param(title: str, description: str) -> Param:
    """A day, chosen from a calendar; or none."""
    pattern = rf"^\d{{4}}-\d{{2}}-\d{{2}}{END}"
    return Param(None, type=["null", "string"], format="date", pattern=pattern, title=title, description_md=description)


def key_param(title: str, description: str, **more: Any) -> Param:
    """The key of a partition, whatever its step; or none."""
    pattern = rf"^\d{{4}}-\d{{2}}(-\d{{2}}(T\d{{2}})?)?{END}"
    return Param(None, type=["null", "string"], pattern=pattern, title=title, description_md=description, **more)
