"""Pure. What became of each partition of a backfill, as a page of HTML that needs no network and no script."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8886; }
.reject td:nth-child(3) { color: #c22; font-weight: 600; }
"""


def page_of(made: Sequence[Mapping[str, Any]], left_out: Sequence[str]) -> str:
    """The page. `made` are the facts of commits, in order."""
    rejected = sum(each["outcome"] == "reject" for each in made)
    many = f"{len(made):,} partition{'' if len(made) == 1 else 's'} staged and judged"
    said = f"{many}, each on top of those before it; {rejected:,} rejected." if rejected else f"{many}; none rejected."
    told = f"<p>Not made, for what they come from was rejected: {escape(', '.join(left_out))}.</p>" if left_out else ""
    return "\n".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A backfill</title>',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>What became of each partition</h1><p>{said}</p>{told}",
            "<table><thead><tr><th>Table</th><th>Partition</th><th>Outcome</th><th>Rows in</th><th>Commit</th></tr>",
            "</thead><tbody>",
            *map(_row, made),
            "</tbody></table></body></html>",
        )
    )


def _row(facts: Mapping[str, Any]) -> str:
    cells = (facts["table"], facts["partition"], None, f"{facts['rows_in']:,}", facts["commit"] or "none")
    shown = "".join(f"<td>{_outcome(facts) if cell is None else escape(str(cell))}</td>" for cell in cells)
    return f"<tr class={facts['outcome']!r}>{shown}</tr>"


def _outcome(facts: Mapping[str, Any]) -> str:
    return "<br>".join(_lines(facts))


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    yield escape(facts["outcome"])
    yield from map(escape, facts["failures"])
