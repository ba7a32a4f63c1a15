"""Use case: a lake is examined, beside its readers and writers.

Step by step: what the connected user may do, and whether the clocks agree; whether the catalog agrees with itself; for
each table, what is stored, against what the catalog names: a listing, a page of the catalog's files at a time, each
file's footer, and if it is to be a deep look, all rows. Then what it was told to put right.

What changes meanwhile is no finding: whatever looks wrong is asked for again, first in the storage and then in the
catalog, which forgets a file before it is deleted. Files that are staged after the listing began are left out.
Memory does not grow with the lake: a bit for each file of a table, and the first findings of each kind.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from lakelib.catalog import doctor as catalog_doctor
from lakelib.catalog import tables
from lakelib.catalog.doctor import ExaminedTable
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.model.doctor import REPAIRS, DoctorReport, Finding, Harm, Repair
from lakelib.model.table import TableRef
from lakelib.ops.backup import bring_back
from lakelib.ops.create import split_name
from lakelib.ops.cross_partition import find_strays, settle_keys
from lakelib.ops.doctor_files import DANGEROUS_LAG, Account, Tell, examine_table, open_visit
from lakelib.ops.expire import check_length
from lakelib.ops.runtime import Runtime

_NOTED_LAG = timedelta(seconds=5)


def examine(
    runtime: Runtime,
    names: Sequence[str],
    *,
    deep: bool,
    repair: Collection[str],
    backup: str | None,
    dry_run: bool,
    grace: timedelta,
    tell: Tell | None = None,
    more: Sequence[Finding] = (),
    is_borrowed: bool = False,
) -> DoctorReport:
    """The lake's health, or that of some tables. `repair` names what is to be put right (see `REPAIRS`), a dry run only
    tells; `backup` is where damaged files come back from. `tell` hears of every finding. A file that no commit names
    counts as an orphan from the age `grace` on. `more` are findings that the caller has made. That a lake `is_borrowed`
    is none.

    Raises NotFoundError for a table that is not there, RetryableError if the catalog or the store is out of reach.
    """
    began = time.monotonic()
    _check_request(deep, repair, backup, dry_run, grace)
    account = Account(tell=tell)
    chosen = _choose(runtime, names)
    ids = [table.id for table in chosen]
    for finding in (
        *more,
        *(() if is_borrowed else _check_identity(runtime)),
        *_check_surroundings(runtime),
        *catalog_doctor.check_catalog(runtime.catalog, ids),
        *catalog_doctor.check_holds(runtime.catalog, ids),
    ):
        account.add(finding)
    with ThreadPoolExecutor(runtime.read_threads, thread_name_prefix="lakelib-doctor") as pool:
        for table in chosen:
            with suppress(NotFoundError):  # it was dropped meanwhile
                examine_table(open_visit(runtime, table, account, pool, deep=deep, grace=grace))
                if deep or "keys" in repair:
                    _check_keys(runtime, table, account)
    return DoctorReport(
        deep=deep,
        dry_run=dry_run,
        tables=tuple(table.name for table in chosen),
        files=account.files,
        size_bytes=account.size_bytes,
        unstaged=account.unstaged,
        findings=tuple(account.findings),
        counts=dict(account.counts),
        repairs=tuple(_repair(runtime, ids, repair, account, backup, dry_run=dry_run)),
        seconds=time.monotonic() - began,
    )


def _check_request(
    deep: object, repair: Collection[str], backup: str | None, dry_run: object, grace: timedelta
) -> None:
    check_length("grace", grace)
    for name, value in (("deep", deep), ("dry_run", dry_run)):
        if not isinstance(value, bool):
            raise InvalidInputError(f"{name} is {value!r}.", kind="invalid_repair", remedy="Give True or False.")
    if isinstance(repair, str) or any(one not in REPAIRS for one in repair):
        raise InvalidInputError(
            f"repair is {repair!r}.", kind="invalid_repair", remedy=f"Give a list of some of: {', '.join(REPAIRS)}."
        )
    if ("files" in repair) != (backup is not None):
        raise InvalidInputError(
            "Damaged files are brought back from a backup, and "
            + ("none is named." if backup is None else "repair does not name files."),
            kind="invalid_repair",
            remedy='Give both: repair=["files"] and where the backup is.',
        )


def _choose(runtime: Runtime, names: Sequence[str]) -> list[ExaminedTable]:
    known = {table.name: table for table in catalog_doctor.list_tables(runtime.catalog)}
    for name in names:
        split_name(name)
        if name not in known:
            raise tables.table_missing(name, known)
    return [table for name, table in known.items() if not names or name in set(names)]


def _check_surroundings(runtime: Runtime) -> Iterator[Finding]:
    """What is not about one table: what the connected user may do, and the clocks."""
    yield from catalog_doctor.check_rights(runtime.catalog)
    yield from _check_clocks(runtime)


def _check_identity(runtime: Runtime) -> Iterator[Finding]:
    difference = runtime.ownership.look().difference
    if difference is not None:
        yield Finding(
            severity=Harm.AT_RISK,
            kind=difference.kind,
            table=None,
            place=runtime.warehouse,
            detail=f"the lake can only be read here: {difference.detail}",
            remedy="Name the catalog and the warehouse that belong together, or adopt the lake: `lake adopt`.",
        )


def _check_clocks(runtime: Runtime) -> Iterator[Finding]:
    ahead, blur = catalog_doctor.measure_clock(runtime.catalog)
    yield from _lag("the catalog", "this host", ahead, blur)
    began = datetime.now(UTC)
    told = runtime.storage.clock()
    if told is not None:
        half = (datetime.now(UTC) - began) / 2
        second = timedelta(seconds=1)  # the finest that a store tells
        yield from _lag("the catalog", "the storage", ahead - (told - (began + half)), blur + half + second)


def _lag(one: str, other: str, ahead: timedelta, blur: timedelta) -> Iterator[Finding]:
    lag = abs(ahead) - blur
    if lag < _NOTED_LAG:
        return
    seconds = f"{abs(ahead).total_seconds():,.0f} s"
    yield Finding(
        severity=Harm.AT_RISK if lag > DANGEROUS_LAG else Harm.NOTABLE,
        kind="clocks_differ",
        table=None,
        place=f"{one} and {other}",
        detail=f"the clock of {one} is {seconds} {'ahead of' if ahead > timedelta(0) else 'behind'} that of {other}",
        remedy="Keep both in step (NTP). Until then let vacuum's grace be longer by as much.",
    )


def _check_keys(runtime: Runtime, examined: ExaminedTable, account: Account) -> None:
    """That a key is in one partition at most, where the table says so."""
    table = tables.load_table(runtime.catalog, TableRef(id=examined.id, full_name=examined.name))
    strays = find_strays(runtime, table, table.head_id) if table.options.cross_partition else None
    if strays is not None and strays.count:
        account.unsettled.append(table.ref)
        account.add(
            Finding(
                severity=Harm.DAMAGED,
                kind="key_in_several_partitions",
                table=table.full_name,
                place=f"snapshot {table.head_id}",
                detail=strays.said,
                remedy="`lake doctor --repair keys --yes` takes all rows of such a key away but the newest.",
            )
        )


def _repair(
    runtime: Runtime,
    table_ids: Sequence[int],
    repair: Collection[str],
    account: Account,
    backup: str | None,
    *,
    dry_run: bool,
) -> Iterator[Repair]:
    if "queue" in repair:
        yield from catalog_doctor.unqueue(runtime.catalog, table_ids, dry_run=dry_run)
    if "leases" in repair:
        yield from catalog_doctor.drop_leases(runtime.catalog, table_ids, dry_run=dry_run)
    if "keys" in repair:
        for ref in account.unsettled:
            if dry_run or settle_keys(runtime, ref) is not None:
                yield Repair(kind="keys", table=ref.full_name, place="rows that are not the newest of their key")
    if "files" in repair and backup is not None:
        damaged = [(table.name, table.location, path, size_bytes) for table, path, size_bytes in account.damaged]
        for name, uri in bring_back(runtime.storage, runtime.storage.at(backup), damaged, dry_run=dry_run):
            yield Repair(kind="files", table=name, place=uri)
