"""What works on one lake at the same time, each in a process of its own, until a deadline. What they return is counted.

Writers know what they have written: each has keys of its own, and the last value that was acknowledged of each counts.
Readers remember what a snapshot has held when they first saw it: it never holds anything else later.
"""

import hashlib
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

import lakelib
from lakelib import ConflictError, Lake, NotFoundError, Scan, Table

Say = Callable[[object], None]
Ledger = dict[tuple[str, int], int]
"""What a writer's rows hold: value by day and key."""

ORDERS, LOG = "soak.orders", "soak.log"
DAYS = ("mon", "tue", "wed")
VICTIM = "victim"

KEEP_SECONDS = 10
"""How long a snapshot stays that is neither tagged nor read: longer than the way from a plan to its lease."""
STAGED_SECONDS = 30
ORPHAN_SECONDS = 45
"""Longer than a write takes from its first file until it is staged, also on a machine that is busy."""

_KEYS = 400
_SLOW_BATCHES = 10
"""So many batches a slow reader takes its time over."""
_OVERTAKEN = ("rows_added", "rows_removed", "input_gone", "fenced")


@dataclass(slots=True)
class Report:
    """What a worker has done, by what it is called."""

    counts: Counter[str] = field(default_factory=Counter)
    ledger: Ledger = field(default_factory=dict)
    log_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a worker is told."""

    warehouse: str
    catalog: str
    deadline: float
    """By time.time()."""
    seed: int

    def until_deadline(self) -> Iterator[random.Random]:
        chance = random.Random(self.seed)
        while time.time() < self.deadline:
            yield chance

    def open(self) -> Lake:
        return lakelib.connect(warehouse=self.warehouse, catalog=self.catalog)


def create_tables(lake: Lake) -> None:
    lake.create_namespace("soak")
    schema = "id bigint not null, day string, owner bigint, value bigint, filler string"
    lake.create_table(
        ORDERS, schema, primary_key=["id"], partition_by=["day"], buckets=4, options={"min_bucket_file_bytes": 0}
    )
    lake.create_table(LOG, "owner bigint, number bigint")


# Writers


def write(say: Say, place: Place, owner: int) -> Report:
    """Upserts, deletes, staged commits that are published late or never, and appends to a log."""
    report = Report()
    works = [upsert] * 6 + [delete_keys, delete_where, stage_late, stage_never] + [append] * 3
    with place.open() as lake:
        for number, chance in enumerate(place.until_deadline(), start=1):
            work = chance.choice(works)
            work(lake, report, chance, owner, number)
            report.counts[work.__name__] += 1
    return report


def upsert(lake: Lake, report: Report, chance: random.Random, owner: int, number: int) -> None:
    content = _some_rows(chance, owner, number)
    lake.table(ORDERS).upsert(_arrow(content, owner))
    report.ledger |= content


def delete_keys(lake: Lake, report: Report, chance: random.Random, owner: int, number: int) -> None:
    gone = chance.sample(sorted(report.ledger), min(20, len(report.ledger)))
    lake.table(ORDERS).delete_keys(pa.table({"id": [key for _, key in gone], "day": [day for day, _ in gone]}, _KEY))
    for place in gone:
        del report.ledger[place]


def delete_where(lake: Lake, report: Report, chance: random.Random, owner: int, number: int) -> None:
    day, below = chance.choice(DAYS), number - chance.randrange(5, 30)
    lake.table(ORDERS).delete(f"day = '{day}' and owner = {owner} and value < {below}")
    report.ledger = {place: value for place, value in report.ledger.items() if place[0] != day or value >= below}


def stage_late(lake: Lake, report: Report, chance: random.Random, owner: int, number: int) -> None:
    content = _some_rows(chance, owner, number)
    staged = lake.table(ORDERS).stage_upsert(_arrow(content, owner))
    time.sleep(chance.uniform(0, 2))
    assert staged.scan(scope="staged").count() == len(content)
    staged.publish()
    report.ledger |= content


def stage_never(lake: Lake, report: Report, chance: random.Random, owner: int, number: int) -> None:
    """As a writer that stops to think, and a gate that says no."""
    staged = lake.table(ORDERS).stage_delete(f"owner = {owner} and value < {number}")
    if chance.random() < 0.5:
        staged.reject("not wanted")


def append(lake: Lake, report: Report, chance: random.Random, owner: int, number: int) -> None:
    count = chance.randrange(1, 50)
    lake.table(LOG).append(pa.table({"owner": [owner] * count, "number": list(range(count))}))
    report.log_rows += count


def _some_rows(chance: random.Random, owner: int, number: int) -> Ledger:
    keys = chance.sample(range(owner * _KEYS, (owner + 1) * _KEYS), chance.randrange(1, 60))
    return {(DAYS[key % len(DAYS)], key): number for key in keys}


def _arrow(content: Ledger, owner: int) -> pa.Table:
    return pa.table(
        {
            "id": [key for _, key in content],
            "day": [day for day, _ in content],
            "owner": [owner] * len(content),
            "value": list(content.values()),
            "filler": [f"{value:0200d}" for value in content.values()],
        }
    )


_KEY = pa.schema([("id", pa.int64()), ("day", pa.string())])


def overwrite(say: Say, place: Place, owner: int) -> Report:
    """Replaces a partition that nobody else writes, directly and staged."""
    report = Report()
    with place.open() as lake:
        for number, chance in enumerate(place.until_deadline(), start=1):
            content = {("own", owner * _KEYS + key): number for key in range(chance.randrange(1, 40))}
            table = lake.table(ORDERS)
            try:
                if chance.random() < 0.7:
                    table.overwrite(_arrow(content, owner), partitions={"day": "own"})
                else:
                    staged = table.stage_overwrite(_arrow(content, owner), partitions={"day": "own"})
                    time.sleep(chance.uniform(0, 1))
                    staged.publish()
            except ConflictError as conflict:
                if conflict.kind not in _OVERTAKEN:
                    raise
                report.counts["overwrites overtaken"] += 1
                continue
            report.ledger = dict(content)
            report.counts["overwrite"] += 1
            time.sleep(chance.uniform(0.1, 0.5))
    return report


def be_killed(say: Say, place: Place, progress: str) -> None:
    """Appends the numbers 1, 2, 3 … to the log, each once, however often it is killed and started again."""
    noted = Path(progress)
    with place.open() as lake:
        table = lake.table(LOG)
        number = int(noted.read_text()) if noted.exists() else 0
        for _ in place.until_deadline():
            number += 1
            table.append(pa.table({"owner": [-1], "number": [number]}), idempotency_key=(VICTIM, number))
            draft = noted.with_suffix(".draft")
            draft.write_text(str(number))
            draft.replace(noted)


# Maintenance


def compact(say: Say, place: Place) -> Report:
    report = Report()
    with place.open() as lake:
        for chance in place.until_deadline():
            done = lake.table(chance.choice((ORDERS, LOG))).compact(full=chance.random() < 0.3)
            report.counts["compaction units"] += done.units
            report.counts["compaction units skipped"] += done.units_skipped
            time.sleep(chance.uniform(0.1, 0.7))
    return report


def expire(say: Say, place: Place) -> Report:
    report = Report()
    with place.open() as lake:
        for chance in place.until_deadline():
            for name in (ORDERS, LOG):
                done = lake.table(name).expire(
                    keep_last=chance.randrange(1, 4),
                    older_than=timedelta(seconds=KEEP_SECONDS),
                    staged_older_than=timedelta(seconds=STAGED_SECONDS),
                    grace=timedelta(seconds=chance.choice((0, 3))),
                )
                report.counts["snapshots expired"] += len(done.snapshots)
                report.counts["commits expired"] += done.commits
                report.counts["snapshots kept back"] += len(done.kept_back)
                report.counts["files given up"] += done.files
            time.sleep(chance.uniform(0.2, 1.5))
    return report


def vacuum(say: Say, place: Place) -> Report:
    report = Report()
    with place.open() as lake:
        for chance in place.until_deadline():
            done = lake.vacuum(grace=timedelta(seconds=ORPHAN_SECONDS))
            report.counts["files deleted"] += done.files
            report.counts["orphans deleted"] += done.orphans
            assert not done.failed, done.failed
            time.sleep(chance.uniform(0.2, 2))
    return report


# Readers


def read(say: Say, place: Place) -> Report:
    """Reads the head, tags and older snapshots, slowly at times. An older one may expire before it is held."""
    report = Report()
    seen: dict[tuple[str, int], str] = {}
    with place.open() as lake:
        for chance in place.until_deadline():
            table = lake.table(chance.choice((ORDERS, ORDERS, LOG)))
            kind = chance.choice((_read_head, _read_tag, _read_older))
            scan = kind(table, chance, report)
            if scan is None or scan.snapshot_id is None:
                continue
            found = _digest(scan, chance)
            if found is None:
                assert kind is _read_older, f"snapshot {scan.snapshot_id} of {table.name} was gone: {kind.__name__}"
                report.counts["reads too late"] += 1
                continue
            known = seen.setdefault((table.name, scan.snapshot_id), found)
            assert known == found, f"snapshot {scan.snapshot_id} of {table.name} has changed"
            report.counts["reads"] += 1
    return report


def _read_head(table: Table, chance: random.Random, report: Report) -> Scan:
    return table.scan()


def _read_tag(table: Table, chance: random.Random, report: Report) -> Scan | None:
    """Keeps a few tags, of this process's own."""
    mine = f"reader {os.getpid()} "
    tags = [tag for tag in table.tags() if tag.name.startswith(mine)]
    if len(tags) > 3:
        table.delete_tag(tags[-1].name)
        report.counts["tags deleted"] += 1
    if len(tags) < 3:
        try:
            tags.append(table.tag(f"{mine}{time.time_ns()}", at=chance.choice((None, _some_id(table, chance)))))
            report.counts["tags"] += 1
        except NotFoundError as error:
            if error.kind not in ("snapshot_expired", "snapshot_not_found"):
                raise
    return table.scan(at=f"tag:{chance.choice(tags[:3]).name}") if tags else None


def _read_older(table: Table, chance: random.Random, report: Report) -> Scan | None:
    wanted = _some_id(table, chance)
    try:
        return table.scan(at=wanted) if wanted else None
    except NotFoundError as error:
        if error.kind != "snapshot_expired":
            raise
        return None


def _some_id(table: Table, chance: random.Random) -> int | None:
    history = table.history()
    return chance.choice(history).id if history else None


def _digest(scan: Scan, chance: random.Random) -> str | None:
    """What the rows come to, in any order; None if the snapshot was gone before it was held."""
    pause = chance.choice((0, 0, 0.3))
    total = 0
    try:
        for place, batch in enumerate(scan.to_batches()):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                total += int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=8).digest(), "big")
            time.sleep(pause if place < _SLOW_BATCHES else 0)
    except NotFoundError as error:
        if error.kind != "snapshot_expired":
            raise
        return None
    return f"{total:x}"
