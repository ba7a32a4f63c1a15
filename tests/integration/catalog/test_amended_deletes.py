"""Deletes that are amended beside others: what came in between is taken in, and nothing else."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lakelib
from lakelib.catalog import commits
from lakelib.model.table import CommitKind
from lakelib.ops import delete
from tests.staging_hooks import before_staging

Act = Callable[[], object]

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.int64()), ("seq", pa.int64())])


@pytest.fixture
def sequenced(lake: lakelib.Lake) -> lakelib.Table:
    return lake.create_table(
        "shop.sequenced", SCHEMA, primary_key=["id"], partition_by=["day"], sequence_by=["seq"], buckets=2
    )


@pytest.fixture
def keyed(lake: lakelib.Lake) -> lakelib.Table:
    return lake.create_table("shop.keyed", SCHEMA, primary_key=["id"], partition_by=["day"], buckets=2)


def rows(*given: tuple[int, str, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], schema=SCHEMA)


def content(table: lakelib.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(columns=SCHEMA.names).to_arrow().to_pylist())


def once_staged(patch: pytest.MonkeyPatch, *acts: Act) -> None:
    """Before each time that a delete is staged another one of these comes, as long as there are any."""
    left = list(acts)

    def act(catalog: Any, proposal: Any) -> None:
        if proposal.kind is CommitKind.DELETE and left:
            left.pop(0)()

    before_staging(patch, act)


def around_amending(patch: pytest.MonkeyPatch, *, before: Act | None = None, after: Act | None = None) -> list[bool]:
    """These come once each, before and after the first amendment; whether each amendment was made."""
    amend, told = delete.amend_delete, []

    def amend_beside(*given: Any) -> bool:
        if before and not told:
            before()
        told.append(amend(*given))
        if after and len(told) == 1:
            after()
        return told[-1]

    patch.setattr(delete, "amend_delete", amend_beside)
    return told


def test_a_mark_whose_row_went_before_the_amendment_hides_no_later_row(
    sequenced: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    sequenced.append(rows((1, "mon", 1, 5)))
    once_staged(monkeypatch, lambda: sequenced.append(rows((2, "mon", 1, 5))))
    around_amending(monkeypatch, before=lambda: sequenced.overwrite(rows((3, "mon", 0, 5))))

    sequenced.delete("value = 1")
    sequenced.append(rows((1, "mon", 0, 3)))

    assert content(sequenced) == [(1, "mon", 0, 3), (3, "mon", 0, 5)]


def test_a_mark_of_a_new_partition_whose_row_went_after_the_amendment_hides_no_later_row(
    sequenced: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    sequenced.append(rows((1, "mon", 1, 5)))
    once_staged(monkeypatch, lambda: sequenced.append(rows((2, "tue", 1, 5))))
    around_amending(monkeypatch, after=lambda: sequenced.delete("day = 'tue'"))

    sequenced.delete("day <> 'sun' and value = 1")
    sequenced.append(rows((2, "tue", 0, 3)))

    assert content(sequenced) == [(2, "tue", 0, 3)]


def test_an_older_deep_file_is_no_newer_than_a_shallow_one(lake: lakelib.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of single buckets, and one that covers all, come while a delete is under way."""
    table = lake.create_table(
        "shop.deep", SCHEMA, primary_key=["id"], buckets=4, options={"min_bucket_file_bytes": 1024}
    )
    many = 20_000
    table.append(rows((-1, "mon", 0, 0)))

    def come() -> None:
        table.append(
            pa.table({"id": range(many), "day": ["mon"] * many, "value": [1] * many, "seq": range(many)}, schema=SCHEMA)
        )
        table.append(rows(*((key, "tue", 2, 0) for key in range(0, many, 1000))))
        depths = {file.depth for file in table.files()}
        assert depths >= {0, 2}, depths

    once_staged(monkeypatch, come)
    told = around_amending(monkeypatch)

    table.delete("value = 1")

    assert told == [True]
    assert [row[0] for row in content(table)] == [-1, *range(0, many, 1000)]


def test_a_delete_by_commit_takes_in_what_came_meanwhile(keyed: lakelib.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed.upsert(rows((1, "mon", 1, 0)))
    once_staged(monkeypatch, lambda: keyed.upsert(rows((2, "mon", 1, 0), (1, "mon", 2, 0))))

    keyed.delete("_commit = 2")

    assert content(keyed) == []


def test_files_of_an_amendment_stay_if_somebody_has_published_it_before_its_reply_came(
    lake: lakelib.Lake, keyed: lakelib.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed.upsert(rows((1, "mon", 1, 0)))
    once_staged(monkeypatch, lambda: keyed.upsert(rows((2, "mon", 1, 0))))
    amend = commits.amend

    def amend_and_hear_late(catalog: Any, amendment: Any) -> Any:
        amend(catalog, amendment)
        lake.staged(amendment.commit_id).publish()
        return amend(catalog, amendment)

    monkeypatch.setattr(commits, "amend", amend_and_hear_late)

    keyed.delete("value = 1")

    assert content(keyed) == []
    assert keyed.history()[-1].id == 1
    for snapshot in keyed.history():
        keyed.scan(at=snapshot.id).to_arrow()
