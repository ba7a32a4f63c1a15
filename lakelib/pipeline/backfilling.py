"""Partitions of tables, and of the tables that are made from them, staged and judged for one transaction; read this
first.

The tables come in the order of the chain, and of each its partitions in the order given. A commit is made and judged on
top of those before it: its gate, and the transforms that read its table, see the rows as they would be after the
transaction. Which partitions of a later table are made anew follows from those that the commits before have touched: a
late correction belongs to another day than its feed's. Publishing is for later.

What became of each partition is a page of HTML, too, that needs no network and no script.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

import lakelib
from lakelib import ConflictError, InvalidInputError, Lake
from lakelib.dataclass import dataclass
from lakelib.model.table import CommitState
from lakelib.ops.create import find_table
from lakelib.ops.inspect import list_touched_by
from lakelib.pipeline.arguments import BackfillArguments, IngestArguments, Surroundings
from lakelib.pipeline.ingesting import Ingested, NothingToCommit, ingest_partition, warn
from lakelib.pipeline.outcome import note
from lakelib.pipeline.partitions import Transaction
from lakelib.pipeline.sessions import watched_session
from lakelib.specs.folder import (
    check_count,
    check_together,
    in_order,
    inputs_of,
    is_made_with_inputs,
    keys_after,
    split_followers,
)
from lakelib.specs.table_spec import TableSpec, load_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Made = Ingested | NothingToCommit
_SQL_SETTINGS = "spark.sql."
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #8886; }
.reject td:nth-child(3) { color: #c22; font-weight: 600; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    """The commits, in the order in which they are to be published; and what was not made since a gate rejected what it
    comes from."""

    made: tuple[Made, ...]
    left_out: tuple[str, ...]
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        return {"staged": [each.facts() for each in self.made], "left_out": list(self.left_out)}

    def lines(self) -> Iterator[str]:
        for each in self.made:
            yield f"{each.facts()['outcome']:<11} {each.table} {each.partition}"
            yield from (f"              {line}" for line in each.facts()["failures"])
        yield from (f"left out    {table}: its input was rejected" for table in self.left_out)


def backfill(job: BackfillArguments, given_session: "SparkSession | None" = None) -> Backfilled:
    """Raises as `ingest` does, naming the partition, and InvalidInputError before anything is staged for what no
    transaction can hold. A rejected commit is an outcome: the other partitions of its table are judged all the same."""
    specs = {spec.table: spec for spec in map(load_spec, job.specs)}
    named = _named(job, specs)
    for spec in specs.values():
        warn(job.surroundings, spec)
    around = job.surroundings
    with (
        lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake,
        _Spark(around, given_session) as spark,
    ):
        done = _Course(lake, job, specs, spark).go(named)
    if job.report is not None:
        job.report.write_text(page_of([each.facts() for each in done.made], done.left_out), encoding="utf-8")
    return done


def _named(job: BackfillArguments, specs: Mapping[str, TableSpec]) -> dict[str, list[str]]:
    """The keys by table, checked."""
    found: dict[str, list[str]] = {}
    for table, key in job.items:
        if table not in specs:
            raise InvalidInputError(
                f"There is no spec of {table}.", kind="unknown_table", remedy="Name its file with --spec."
            )
        found.setdefault(table, []).append(specs[table].check_key(key))
    check_count(sum(map(len, found.values())), "are named")
    for table, keys in found.items():
        check_together(specs[table], keys)
    return found


class _Spark:
    """One session for all that takes Spark, opened when the first does."""

    def __init__(self, around: Surroundings, given: "SparkSession | None") -> None:
        self._around = around
        self._given = given
        self._session: SparkSession | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "_Spark":
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @contextmanager
    def under(self, settings: Mapping[str, str]) -> Iterator["SparkSession"]:
        """The session, meanwhile with these settings of its own."""
        if self._session is None:
            self._session = self._stack.enter_context(watched_session("backfill", self._around, self._given))
        conf = self._session.conf
        before = {name: conf.get(name, None) for name in settings}
        for name, value in settings.items():
            conf.set(name, value)
        try:
            yield self._session
        finally:
            for name, earlier in before.items():
                conf.unset(name) if earlier is None else conf.set(name, earlier)


class _Course:
    """One call's way through the chain."""

    def __init__(self, lake: Lake, job: BackfillArguments, specs: Mapping[str, TableSpec], spark: _Spark) -> None:
        self._lake = lake
        self._job = job
        self._specs = specs
        self._spark = spark
        self._transaction = Transaction()
        self._made: list[Made] = []
        self._changed: dict[str, list[str]] = {}
        self._spoilt: set[str] = set()
        self._replaced: dict[str, dict[str, str]] = {}
        """By table, the partitions that overwrites replace, and which of the work does."""

    def go(self, named: Mapping[str, Sequence[str]]) -> Backfilled:
        followers = split_followers(tuple(self._specs.values()), named)[0] if self._job.downstream else ()
        left_out = []
        for spec in in_order([self._specs[table] for table in named] + list(followers)):
            keys = self._keys_of(spec, named.get(spec.table, ()))
            if self._spoilt & {*inputs_of(spec)}:
                self._spoilt.add(spec.table)
                left_out.append(spec.table)
                continue
            check_count(len(self._made) + len(keys), f"are to be made, with those of {spec.table}")
            for key in keys:
                self._make(spec, key)
        return Backfilled(made=tuple(self._made), left_out=tuple(left_out))

    def _keys_of(self, spec: TableSpec, named: Sequence[str]) -> list[str]:
        """Those that were named, and those that what was made before has changed."""
        if not self._job.downstream or not is_made_with_inputs(spec, self._changed):
            return list(named)
        follows = keys_after(spec, self._changed, self._specs)
        return sorted({*named, *follows}) if follows else list(named)

    def _make(self, spec: TableSpec, key: str) -> None:
        note(self._job.surroundings, f"{spec.table} {key}")
        application, version = self._job.key
        job = IngestArguments(
            spec=spec.path,
            partition=key,
            key=(f"{application}/{key}", version),
            at={},
            properties={},
            report=None,
            surroundings=self._job.surroundings,
        )
        several = len(self._specs) > 1  # a single one's settings are the session's own
        settings = {name: text for name, text in spec.spark.conf.items() if several and name.startswith(_SQL_SETTINGS)}
        try:
            made = ingest_partition(self._lake, job, spec, lambda: self._spark.under(settings), self._transaction)
        except Exception as error:
            error.add_note(f"(Partition {key} of {spec.table}; nothing of the backfill is published.)")
            raise
        self._made.append(made)
        if isinstance(made, Ingested):
            self._note(spec, made)
        else:
            self._changed.setdefault(spec.table, []).append(key)

    def _note(self, spec: TableSpec, made: Ingested) -> None:
        """What comes after it is made and judged on top of it."""
        runtime = self._lake.runtime
        touched = list_touched_by(runtime, find_table(runtime, spec.table), made.commit_id)
        if spec.write.mode == "overwrite":
            self._check_apart(spec, made, touched)
        keys = {made.partition, *(spec.key_of_row(values) for values in touched)}
        self._changed.setdefault(spec.table, []).extend(sorted(key for key in keys if key is not None))
        if made.state == CommitState.REJECTED.value:
            self._spoilt.add(spec.table)
        if made.state != CommitState.PUBLISHED.value:
            self._transaction = self._transaction.extended(spec.table, made.commit_id)

    def _check_apart(self, spec: TableSpec, made: Ingested, touched: Sequence[Mapping[str, Any]]) -> None:
        """An overwrite replaces what everybody sees, not what others of its transaction bring."""
        replaced = self._replaced.setdefault(spec.table, {})
        for place in (repr(values) for values in touched):
            other = replaced.setdefault(place, made.partition)
            if other != made.partition:
                raise ConflictError(
                    f"Partition {made.partition} of {spec.table} overwrites rows that partition {other} brings in the"
                    " same transaction.",
                    kind="overwrites_own",
                    remedy="Publish them one by one, without atomic; nothing is published.",
                )


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
