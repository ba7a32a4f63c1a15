"""Pure. A verdict as a page of HTML: one file that needs no network, no script and no font of its own. It is for light
and dark, for a screen, a phone and paper."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from lakelib.gates.failing import counted, key_text, percent
from lakelib.model.effect import measured_text
from lakelib.model.gate import Background, Before, CheckResult, FailingRows, Outcome, Severity, Status, Verdict

_HEADLINES = {
    Outcome.ACCEPT: "Every check that counts has passed.",
    Outcome.WARN: "Nothing critical, but somebody should look at the warnings.",
    Outcome.REJECT: "A critical check has failed. Nobody sees these rows unless a person publishes them.",
    Outcome.ERRORED: "A critical check could not be carried out. Nothing is said of the rows; judge them again.",
}
_WORDS = {
    Outcome.ACCEPT: "Accepted",
    Outcome.WARN: "Accepted with warnings",
    Outcome.REJECT: "Rejected",
    Outcome.ERRORED: "Not judged",
}
_SECTIONS = (
    (Status.FAILED, "Failed"),
    (Status.ERRORED, "Could not be carried out"),
    (Status.PASSED, "Passed"),
)
_SEVERITIES = tuple(Severity)
_NOTHING_KNOWN = Background()
STYLE = """
:root{--page:#f5f6f8;--card:#fff;--ink:#1b2330;--soft:#5b6675;--line:#dfe3e9;--code:#eef1f5;
--passed:#1a7f4b;--failed:#c62f3b;--errored:#8a5a00;--warning:#b26a00;--info:#3568b8;--tone:var(--passed)}
@media (prefers-color-scheme:dark){:root{--page:#11151b;--card:#1a2029;--ink:#e6eaf0;--soft:#98a4b3;--line:#2c3541;
--code:#242c37;--passed:#4cc38a;--failed:#ff7b81;--errored:#e3b341;--warning:#f0a84b;--info:#7fb0ff}}
body.warn{--tone:var(--warning)}body.reject{--tone:var(--failed)}body.errored{--tone:var(--errored)}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);border-top:.4rem solid var(--tone);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:60rem;margin:0 auto;padding:0 1.25rem 3rem}
header{padding:2rem 0 .5rem}
h1{margin:.35rem 0;font-size:1.9rem;line-height:1.2;overflow-wrap:anywhere}
.badge{display:inline-block;margin:0;padding:.15rem .75rem;border-radius:99px;background:var(--tone);color:var(--page);
font-weight:650}
.headline{margin:0;color:var(--soft);font-size:1.05rem}
.tally{margin:1rem 0 1.5rem}.tally p{margin:.4rem 0 0;color:var(--soft)}.tally b{color:var(--ink)}
.bar{display:flex;gap:3px;height:.55rem}.bar i{border-radius:3px;min-width:.4rem}
.bar .passed{background:var(--passed)}.bar .failed{background:var(--failed)}.bar .errored{background:var(--errored)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:1px;margin:0;background:var(--card);
border:1px solid var(--line);border-radius:.6rem;overflow:hidden}
.facts div{box-shadow:0 0 0 1px var(--line);padding:.6rem .9rem}
dt{color:var(--soft);font-size:.8rem}dd{margin:0;overflow-wrap:anywhere}
small{color:var(--soft);font-size:.85em;white-space:nowrap}
h2{margin:2rem 0 .75rem;font-size:1.15rem}h2 span{color:var(--soft);font-weight:400}
article{position:relative;background:var(--card);border:1px solid var(--line);border-left:.3rem solid var(--tone);
border-radius:.6rem;padding:.85rem 1rem;margin:0 0 .7rem}
article.passed{--tone:var(--passed)}article.failed,article.errored{--tone:var(--failed)}article.errored{--tone:var(--errored)}
article.failed.warning{--tone:var(--warning)}article.failed.info{--tone:var(--info)}
h3{margin:0 10rem .2rem 0;font-size:1.02rem;overflow-wrap:anywhere}
.chips{position:absolute;top:.85rem;right:1rem;margin:0;display:flex;gap:.35rem}
.chips span{padding:0 .55rem;border:1px solid var(--line);border-radius:99px;color:var(--soft);font-size:.8rem}
.failed .chips .critical,.errored .chips .critical,.failed .chips .warning{border-color:var(--tone);color:var(--tone)}
.what{margin:.1rem 0;color:var(--soft);font-size:.88rem}
.argument{display:inline-block;margin-right:.6rem;max-width:100%}
code,pre{font:.88em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{overflow-wrap:anywhere;white-space:pre-wrap}
.argument code,.measure code,li code{background:var(--code);border-radius:.3rem;padding:.05rem .35rem}
em{color:var(--soft)}
.measure{margin:.35rem 0 0}.failed .measure b{color:var(--tone)}
.share{height:.35rem;max-width:24rem;margin-top:.3rem;border-radius:99px;background:var(--code);overflow:hidden}
.share i{display:block;height:100%;background:var(--tone)}
.sample h4{margin:.7rem 0 .3rem;font-size:.85rem;font-weight:500;color:var(--soft)}
.sample ul{display:flex;flex-wrap:wrap;gap:.35rem;margin:0;padding:0;list-style:none}
pre{margin:.6rem 0 0;padding:.6rem .8rem;background:var(--code);border-radius:.4rem;white-space:pre-wrap;
overflow-wrap:anywhere}
@media (max-width:36rem){main{padding:0 .8rem 2rem}header{padding-top:1.2rem}h1{font-size:1.5rem}h3{margin-right:0}
.chips{position:static;margin:.25rem 0}}
@media print{body{background:#fff}article{break-inside:avoid}}
"""


def report_html(verdict: Verdict, *, table: str = "", state: str = "", background: Background = _NOTHING_KNOWN) -> str:
    """The page. Whatever the data holds is shown as text; `table` and the commit's `state` if they are known, and what
    else was found out."""
    title = f"{table or 'Commit'}: {_WORDS[verdict.outcome].lower()} by gate {verdict.gate}"
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head>",
            f'<body class="{verdict.outcome.value}"><main>',
            *_header(verdict, table),
            *_facts(verdict, state, background),
            *_sections(verdict, background),
            "</main></body></html>",
            "",
        )
    )


def _header(verdict: Verdict, table: str) -> Iterator[str]:
    yield "<header>"
    yield f"<p class='badge'>{_WORDS[verdict.outcome]}</p>"
    yield f"<h1>{_text(table) if table else 'Staged commit'}</h1>"
    yield f"<p class='headline'>{_HEADLINES[verdict.outcome]}</p>"
    yield "</header>"
    yield from _tally(verdict.checks)


def _tally(checks: Sequence[CheckResult]) -> Iterator[str]:
    """How many checks came out how, as a bar and in words."""
    counts = [(status, sum(check.status is status for check in checks)) for status, _ in _SECTIONS]
    parts = "".join(f"<i class='{status.value}' style='flex-grow:{count}'></i>" for status, count in counts if count)
    words = " · ".join(f"<b>{count}</b> {status.value}" for status, count in counts)
    yield f"<div class='tally'><div class='bar' aria-hidden='true'>{parts}</div><p>{words}</p></div>"


def _facts(verdict: Verdict, state: str, background: Background) -> Iterator[str]:
    base = f"snapshot {verdict.base_snapshot_id}" if verdict.base_snapshot_id else "an empty table"
    facts = (
        *_origin(background),
        ("Gate", f"{_text(verdict.gate)} <small>suite {_text(verdict.suite_hash)}</small>"),
        ("Commit", f"<code>{verdict.commit_id}</code>" + (f" <small>{_text(state)} now</small>" if state else "")),
        ("Judged", f"{verdict.judged_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("On top of", base),
        ("Carried out", f"{'on Spark' if verdict.engine == 'spark' else 'in process'} in {verdict.seconds:.1f} s"),
    )
    yield "<dl class='facts'>"
    yield from (f"<div><dt>{name}</dt><dd>{shown}</dd></div>" for name, shown in facts)
    yield "</dl>"


def _origin(background: Background) -> Iterator[tuple[str, str]]:
    """Of what the rows are, and where they come from."""
    if background.partition is not None:
        yield "Partition", _text(background.partition)
    if background.rows is not None:
        before = background.before
        then = (
            f" <small>{_text(before.partition)}: {before.rows:,}</small>" if before and before.rows is not None else ""
        )
        yield "Rows", f"{background.rows:,}{then}"
    if background.effect:
        yield "What it does", f"{_text(background.effect)} <small>of the table's rows</small>"
    if background.source is not None:
        files = f" <small>{_text(background.source_files)}</small>" if background.source_files else ""
        yield "Source", f"<code>{_text(background.source)}</code>{files}"
    if background.run is not None:
        yield "Run", f"<code>{_text(background.run)}</code>"
    if background.engine is not None:
        yield "Rows made by", _text(background.engine)


def _sections(verdict: Verdict, background: Background) -> Iterator[str]:
    """What failed first, the most severe first."""
    for status, title in _SECTIONS:
        chosen = [check for check in verdict.checks if check.status is status]
        chosen.sort(key=lambda check: _SEVERITIES.index(check.severity))
        if chosen:
            yield f"<section class='{status.value}'><h2>{title} <span>{len(chosen)}</span></h2>"
            for check in chosen:
                yield from _card(check, background)
            yield "</section>"


def _card(check: CheckResult, background: Background) -> Iterator[str]:
    rows = background.failing.get(check.name)
    yield f"<article class='{check.status.value} {check.severity.value}'>"
    yield f"<h3>{_text(check.name)}</h3>"
    yield (
        f"<p class='chips'><span class='{check.severity.value}'>{check.severity.value}</span>"
        f"<span>{check.scope.value}</span></p>"
    )
    yield f"<p class='what'><code>{_text(check.expectation)}</code> {_arguments(check.arguments)}</p>"
    yield from _measures(check)
    yield from _before(check, background.before)
    if rows is not None and rows.values:
        yield from _values(rows)
    elif check.sample:
        shown = "".join(f"<li><code>{_value(value)}</code></li>" for value in check.sample)
        yield f"<div class='sample'><h4>Values that were not as expected</h4><ul>{shown}</ul></div>"
    if rows is not None:
        yield from _keys(rows)
        yield f"<div class='sample'><h4>Show the rows</h4><pre>{_text(rows.command)}</pre></div>"
    if check.detail:
        yield f"<pre>{_text(check.detail)}</pre>"
    yield "</article>"


def _before(check: CheckResult, before: Before | None) -> Iterator[str]:
    """What the check found in the partition before."""
    then = None if before is None else before.checks.get(check.name)
    if before is None or then is None:
        return
    found = "could not be carried out" if then.status is Status.ERRORED else counted(then)
    if then.unexpected_count is None and then.observed is None:
        found = then.status.value
    yield f"<p class='measure'><small>{_text(before.partition)}, the partition before: {_text(found)}</small></p>"


def _values(rows: FailingRows) -> Iterator[str]:
    listed = "".join(f"<li><code>{_value(value)}</code> × {count:,}</li>" for value, count in rows.values)
    of = f"the first {rows.rows:,} rows" if rows.has_more else "all such rows" if rows.rows > 1 else "one row"
    yield f"<div class='sample'><h4>Values that were not as expected, in {of}</h4><ul>{listed}</ul></div>"


def _keys(rows: FailingRows) -> Iterator[str]:
    if rows.keys:
        listed = "".join(f"<li><code>{_text(key_text(key))}</code></li>" for key in rows.keys)
        yield f"<div class='sample'><h4>Such rows</h4><ul>{listed}</ul></div>"


def _arguments(arguments: Mapping[str, Any]) -> str:
    return " ".join(
        f"<span class='argument'>{_text(name)} <code>{_value(value)}</code></span>" for name, value in arguments.items()
    )


def _measures(check: CheckResult) -> Iterator[str]:
    if check.unexpected_count is not None and check.row_count is not None:
        share = check.unexpected_count / check.row_count if check.row_count else 0.0
        yield (
            f"<p class='measure'><b>{check.unexpected_count:,}</b> of {check.row_count:,} rows not as expected"
            f" <small>{percent(share)}</small></p>"
        )
        if check.unexpected_count:
            yield f"<div class='share' aria-hidden='true'><i style='width:{max(share * 100, 0.5):.2f}%'></i></div>"
    elif check.unexpected_count is not None:
        yield f"<p class='measure'><b>{check.unexpected_count:,}</b> values not as expected</p>"
    if (measured := measured_text(check.observed)) is not None:
        share = check.observed.get("proportion")
        yield f"<p class='measure'>{_text(measured)}{'' if share is None else f' <small>{percent(share)}</small>'}</p>"
    elif check.observed is not None:
        yield f"<p class='measure'>observed <code>{_value(check.observed)}</code></p>"


def _value(value: Any) -> str:
    """As JSON has it: NULL is told from the text "null", the number from the text of digits."""
    if value is None:
        return "<em>NULL</em>"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return _text(json.dumps(value, ensure_ascii=False))


def _text(text: str) -> str:
    """In an element of its own, lest text of the data turns the page's own around it."""
    return f"<bdi>{escape(text)}</bdi>"
