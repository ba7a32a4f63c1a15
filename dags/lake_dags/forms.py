"""What may be written into the forms of DAGs, as JSON schemas. The API and each task go by them, too."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import Param

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,127}"
"""Of a namespace, or of a table in it."""
_END = r"$(?!\n)"
"""The end of a text in Python and in browsers; for Python alone `$` is before a last line break, too."""
_MONTH = r"\d{4}-\d{2}"
_KEYS: Mapping[str, dict[str, Any]] = {
    "day": {"format": "date", "pattern": rf"^{_MONTH}-\d{{2}}{_END}"},
    "hour": {"pattern": rf"^{_MONTH}-\d{{2}}T\d{{2}}{_END}"},
    "month": {"pattern": rf"^{_MONTH}{_END}"},
}
"""Of partitions, by their step."""


def tables_param(examples: Sequence[str], **more: Any) -> Param:
    """Names of tables; nothing that a program could take for an option."""
    return Param(
        [],
        type="array",
        items={"type": "string", "pattern": rf"^{_NAME}\.{_NAME}{_END}"},
        examples=list(examples),
        **more,
    )


def namespace_param() -> Param:
    return Param(None, type=["null", "string"], pattern=rf"^{_NAME}{_END}")


def day_param(title: str, description: str) -> Param:
    """A day, chosen from a calendar; or none."""
    return partition_param("day", title, description)


def partition_param(every: str, title: str, description: str) -> Param:
    """The key of a partition of this step; or none."""
    return Param(None, type=["null", "string"], title=title, description_md=description, **_KEYS[every])


def key_param(title: str, description: str, **more: Any) -> Param:
    """The key of a partition, whatever its step; or none."""
    pattern = rf"^{_MONTH}(-\d{{2}}(T\d{{2}})?)?{_END}"
    return Param(None, type=["null", "string"], pattern=pattern, title=title, description_md=description, **more)
