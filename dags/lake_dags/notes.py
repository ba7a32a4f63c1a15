"""The note of a DAG run: people write into it, and one line of it is ours. Pure."""

MARK = "Lake: "
_LONGEST = 1000
"""As long as Airflow stores."""


def with_line(note: str | None, said: str | None) -> str | None:
    """The note with what is said now in place of what was said before; None for an empty one."""
    theirs = [line for line in (note or "").splitlines() if not line.startswith(MARK)]
    ours = [MARK + said] if said else []
    return "\n".join([*ours, *theirs])[:_LONGEST] or None
