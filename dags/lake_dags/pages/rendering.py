"""What a page looks like: templates that escape whatever they are given, filled in with values of lakelib's."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lake_dags.pages.links import Links, run_name

_FOLDER = Path(__file__).with_name("templates")
HEADERS = {
    # Names, reasons and rows are others' words: whatever they say, nothing of it runs with the viewer's rights.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:;"
    " form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def show(template: str, links: Links, values: Mapping[str, Any], status_code: int = 200) -> HTMLResponse:
    text = _environment().get_template(template).render(links=links, **values)
    return HTMLResponse(text, status_code=status_code, headers=HEADERS)


def read_file(name: str) -> bytes:
    """Of the files beside the templates."""
    return (_FOLDER / name).read_bytes()


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "moment": _moment,
        "age": _age,
        "count": lambda number: "" if number is None else f"{number:,}",
        "size": _size,
        "percent": _percent,
        "run_name": run_name,
    }
    return made


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _age(age: timedelta) -> str:
    from lakelib.cli.values import readable_age

    return readable_age(age)


def _size(count: int) -> str:
    from lakelib.model.upkeep import readable_bytes

    return readable_bytes(count)


def _percent(share: float) -> str:
    """A few rows of many are never shown as none."""
    if 0 < share < 0.0001:
        return "< 0.01 %"
    return f"{share * 100:.2f} %" if share else "0"
