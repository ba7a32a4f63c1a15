"""Promises of required gates: a table requires a suite, not a name, and who takes that away is known for ever."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelib import ConflictError, InvalidInputError, Lake, NotFoundError, RejectedError, StagedCommit, Table
from lakelib.model.gate import Outcome
from lakelib.model.table import CommitState
from lakelib.ops import commit, inspect
from lakelib.settings import StorageSettings
from lakelib.specs.suite import Check, Suite, parse_suite
from tests.acceptance.support import NewTable, data, raised, require_by_name, stored_files

SCHEMA = "id BIGINT, amount INT"
COLUMNS = {"id": pa.int64(), "amount": pa.int32()}
HAS_AMOUNT = "{type: expect_column_values_to_not_be_null, kwargs: {column: amount}}"
POSITIVE = "{type: expect_column_values_to_be_between, kwargs: {column: amount, min_value: 1}}"
UNIQUE = "{type: expect_column_values_to_be_unique, kwargs: {column: amount}, scope: table}"
TRIVIAL = "{type: expect_column_to_exist, kwargs: {column: id}}"
INFO = "{type: expect_column_to_exist, kwargs: {column: id}, severity: info}"


def suite(*checks: str, name: str) -> Suite:
    return parse_suite(f"name: {name}\nexpectations:\n" + "".join(f"- {check}\n" for check in checks))


def rows(*given: tuple[int, int | None]) -> pa.Table:
    return data(COLUMNS, *given)


GOOD, BAD = rows((1, 1), (2, 2)), rows((3, 3), (4, None))


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A gate of the test's own."""
    return str(request.node.name)[:100].translate(str.maketrans("[] ", "___"))


@pytest.fixture
def table(new_table: NewTable) -> Table:
    return new_table(SCHEMA, primary_key=["id"])


@pytest.fixture
def gated(table: Table, name: str) -> Table:
    """Requires that there are amounts."""
    table.require_gate(suite(HAS_AMOUNT, name=name), by="ada")
    return table


def ids(table: Table) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def outcomes(staged: StagedCommit) -> tuple[str, Outcome | None]:
    return staged.state, staged.verdict and staged.verdict.outcome


# Registering


def test_versions_of_a_gate_count_up_and_what_checks_the_same_is_one_of_them(lake: Lake, name: str) -> None:
    first = lake.register_gate(suite(HAS_AMOUNT, POSITIVE, name=name), by="ada")
    other = lake.register_gate(suite(POSITIVE, name=name))
    again = lake.register_gate(suite(POSITIVE, HAS_AMOUNT.replace("{type", "{name: there, type"), name=name), by="bob")
    assert (first.version, other.version, first.registered_by) == (1, 2, "ada")
    assert again == first
    assert other.registered_by
    assert [each for each in lake.gates() if each.name == name] == [other, first]


def test_the_text_that_is_kept_checks_the_same(lake: Lake, name: str) -> None:
    odd = (
        "{type: expect_column_values_to_be_in_set, kwargs: {column: day, value_set: [2026-11-18, '2026-11-18', 'on']}}"
    )
    given = suite(odd, f"{POSITIVE[:-1]}, name: 'say \"äö\"', severity: warning, scope: merged}}", name=name)
    kept = lake.register_gate(given)
    found = parse_suite(kept.text)
    assert (found.name, found.hash, [each.name for each in found.checks]) == (
        given.name,
        given.hash,
        [each.name for each in given.checks],
    )


def test_a_wrong_suite_is_not_registered(lake: Lake, name: str) -> None:
    with raised(InvalidInputError, "invalid_suite"):
        lake.register_gate(suite("{type: expect_nothing}", name=name))
    by_hand = Check(name="x", expectation="expect_column_to_exist", arguments={"column": object()})
    with pytest.raises(InvalidInputError):
        lake.register_gate(Suite(name=name, checks=(by_hand,)))
    with raised(NotFoundError, "file_not_found"):
        lake.register_gate("none.yaml")
    with raised(InvalidInputError, "invalid_suite"):
        lake.register_gate(suite(HAS_AMOUNT, name="long" * 1000))
    for by in (" ", "a\0", 7):
        with raised(InvalidInputError, "invalid_approval"):
            lake.register_gate(suite(HAS_AMOUNT, name=name), by=by)  # type: ignore[arg-type]
    assert name not in {each.name for each in lake.gates()}


def test_who_register_versions_at_once_get_one_each(lake: Lake, name: str) -> None:
    given = [suite(POSITIVE.replace("1}", f"{number % 4}}}"), name=name) for number in range(12)]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lake.register_gate, given))
    assert {each.version for each in found} == {1, 2, 3, 4}
    assert len({(each.version, each.hash) for each in found}) == 4


# Requiring


def test_a_table_requires_a_suite_and_says_who_wanted_it(lake: Lake, table: Table, name: str, tmp_path: Path) -> None:
    assert table.required_gate is None
    file = tmp_path / "gate.yaml"
    file.write_text(f"name: {name}\nexpectations: [{HAS_AMOUNT}]")
    required = table.require_gate(file, by="ada")
    assert (required.name, required.version, required.required_by) == (name, 1, "ada")
    assert lake.table(table.name).required_gate == required
    assert table.require_gate(name, by="bob") == required
    assert table.options == {"required_gate": name}
    assert table.gate_history() == [required]


def test_a_name_stands_for_its_newest_version(lake: Lake, table: Table, name: str) -> None:
    for check in (HAS_AMOUNT, POSITIVE):
        lake.register_gate(suite(check, name=name))
    assert table.require_gate(name).version == 2
    assert table.require_gate(suite(HAS_AMOUNT, name=name), by="eve").version == 1
    now, before = table.gate_history()
    assert (now.version, now.released_at) == (1, None)
    assert (before.version, before.released_by, before.release_reason) == (2, "eve", "replaced by version 1")


def test_a_name_that_nobody_has_registered_is_no_gate(lake: Lake, table: Table, new_table: NewTable, name: str) -> None:
    for require in (
        lambda: table.require_gate(name),
        lambda: table.set_options({"required_gate": name}),
        lambda: new_table(SCHEMA, options={"required_gate": name}),
    ):
        with raised(NotFoundError, "gate_not_registered") as caught:
            require()
        assert "register" in caught.value.remedy
    assert table.required_gate is None


def test_a_suite_without_a_critical_check_cannot_be_required(lake: Lake, table: Table, name: str) -> None:
    lake.register_gate(suite(INFO, POSITIVE.replace("}}", "}, severity: warning}"), name=name))
    with raised(InvalidInputError, "gate_without_critical"):
        table.require_gate(name)
    with raised(InvalidInputError, "gate_without_critical"):
        table.set_options({"required_gate": name})
    assert table.required_gate is None


def test_a_suite_that_does_not_fit_the_table_cannot_be_required(table: Table, name: str) -> None:
    with raised(InvalidInputError, "invalid_suite"):
        table.require_gate(suite(HAS_AMOUNT.replace("amount", "amout"), name=name))
    assert table.required_gate is None


def test_an_option_that_names_a_registered_gate_requires_its_newest_version(
    lake: Lake, table: Table, new_table: NewTable, name: str
) -> None:
    lake.register_gate(suite(HAS_AMOUNT, name=name))
    table.set_options({"required_gate": name, "row_group_rows": 7})
    made = new_table(SCHEMA, options={"required_gate": name})
    for each in (table, made):
        assert each.required_gate is not None
        assert each.required_gate.version == 1
        assert each.required_gate.required_by
    assert table.options == {"required_gate": name, "row_group_rows": 7}
    lake.register_gate(suite(POSITIVE, name=name))
    table.set_options({**table.options, "row_group_rows": 8})
    assert table.required_gate is not None
    assert table.required_gate.version == 1


# What counts


def test_a_suite_of_the_same_name_is_not_the_gate(lake: Lake, gated: Table, name: str) -> None:
    staged = gated.stage_upsert(BAD)
    assert staged.judge(suite(TRIVIAL, name=name)).outcome is Outcome.ACCEPT
    with raised(RejectedError, "verdict_of_another_suite"):
        lake.staged(staged.id).publish()
    assert ids(gated) == []
    with raised(RejectedError, "gate_rejected"):
        staged.publish()
    assert outcomes(staged) == ("rejected", Outcome.REJECT)


def test_a_suite_of_another_name_that_checks_the_same_is_not_the_gate(lake: Lake, gated: Table) -> None:
    staged = gated.stage_upsert(GOOD)
    staged.judge(suite(HAS_AMOUNT, name="another"))
    with raised(RejectedError, "verdict_missing"):
        staged.publish()
    staged.judge()
    assert staged.publish().id == 1


def test_a_later_verdict_of_a_suite_of_the_same_name_changes_nothing(lake: Lake, gated: Table, name: str) -> None:
    """Neither does it open the gate, nor does its being fresh make the required one's less stale."""
    gated.require_gate(suite(UNIQUE, name=name), by="ada")
    staged = gated.stage_upsert(GOOD)
    staged.judge()
    gated.upsert(rows((9, 9)))
    staged.judge(suite(TRIVIAL, name=name))
    with raised(ConflictError, "verdict_stale"):
        lake.staged(staged.id).publish()
    assert staged.publish().id == 2


def test_a_commit_that_was_judged_by_an_older_version_is_judged_again_where_it_was(
    lake: Lake, gated: Table, name: str
) -> None:
    good, poor = gated.stage_upsert(GOOD), gated.stage_upsert(rows((5, 0)))
    for staged in (good, poor):
        assert staged.judge().outcome is Outcome.ACCEPT
    gated.require_gate(suite(HAS_AMOUNT, POSITIVE, name=name), by="ada")
    with raised(RejectedError, "verdict_of_another_suite"):
        lake.staged(good.id).publish()
    assert good.publish().id == 1
    with raised(RejectedError, "gate_rejected"):
        poor.publish()
    assert ids(gated) == [1, 2]


def test_a_transaction_judges_again_by_what_is_required_by_now(lake: Lake, gated: Table, name: str) -> None:
    staged = gated.stage_upsert(GOOD, gate=suite(HAS_AMOUNT, name=name))
    gated.require_gate(suite(POSITIVE, name=name), by="ada")
    with lake.transaction() as tx:
        tx.add(staged)
    assert ids(gated) == [1, 2]


def test_an_overwrite_is_judged_by_what_is_required_at_last(
    gated: Table, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = commit.judge

    def judge_and_move(*given: Any) -> Any:
        monkeypatch.setattr(commit, "judge", first)
        verdict = first(*given)
        gated.require_gate(suite(POSITIVE, name=name), by="ada")
        return verdict

    monkeypatch.setattr(commit, "judge", judge_and_move)
    with raised(RejectedError, "gate_rejected"):
        gated.overwrite(rows((1, 0)))
    assert ids(gated) == []


def test_a_person_may_still_publish_it_all_the_same(gated: Table) -> None:
    staged = gated.stage_upsert(BAD)
    assert staged.publish(by="ada", reason="fine").properties["approved_by"] == "ada"


def test_nothing_is_published_without_the_gate_from_the_moment_it_is_required(table: Table, name: str) -> None:
    """Who has staged before, and publishes at that moment, is refused or was there before."""

    def publish_until_refused(writer: int) -> str:
        for number in range(5_000):
            staged = table.stage_append(rows((10_000 * writer + number, 1)))
            try:
                staged.publish()
            except RejectedError as error:
                return error.kind
        return "never"

    with ThreadPoolExecutor(3) as threads:
        done = [threads.submit(publish_until_refused, writer) for writer in range(3)]
        required = table.require_gate(suite(HAS_AMOUNT, name=name))
        assert [each.result() for each in done] == ["verdict_missing"] * 3
    assert required.required_at is not None
    assert all(snapshot.committed_at < required.required_at for snapshot in table.history())


# Writes


WRITES: dict[str, Callable[..., Any]] = {
    "append": lambda table, **options: table.append(GOOD, **options),
    "upsert": lambda table, **options: table.upsert(GOOD, **options),
    "overwrite": lambda table, **options: table.overwrite(GOOD, **options),
    "delete": lambda table, **options: table.delete("amount > 5", **options),
    "delete keys": lambda table, **options: table.delete_keys(rows((7, 7)), **options),
}
STAGED_WRITES: dict[str, Callable[..., Any]] = {
    "append": lambda table, **options: table.stage_append(GOOD, **options),
    "overwrite": lambda table, **options: table.stage_overwrite(GOOD, **options),
    "delete": lambda table, **options: table.stage_delete("amount > 5", **options),
    "delete keys": lambda table, **options: table.stage_delete_keys(rows((7, 7)), **options),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_is_written_is_judged_by_the_suite_that_is_required(
    lake: Lake, gated: Table, name: str, write: Callable[..., Any]
) -> None:
    gated.append(rows((7, 7)))
    verdict = lake.staged(write(gated).commit_id).verdict
    assert verdict is not None
    assert (verdict.gate, verdict.suite_hash) == (name, suite(HAS_AMOUNT, name=name).hash)
    assert write(gated, gate=suite(HAS_AMOUNT, name=name)).id == 3


def test_what_the_required_suite_rejects_is_not_published(gated: Table) -> None:
    with raised(RejectedError, "gate_rejected"):
        gated.upsert(BAD)
    assert gated.head is None


@pytest.mark.parametrize(
    "write", [*WRITES.values(), *STAGED_WRITES.values()], ids=[*WRITES, *(f"stage {each}" for each in STAGED_WRITES)]
)
def test_another_gate_is_refused_before_anything_is_written(
    gated: Table, storage: StorageSettings, name: str, write: Callable[..., Any]
) -> None:
    for another in (suite(TRIVIAL, name=name), suite(HAS_AMOUNT, name="another")):
        with raised(InvalidInputError, "gate_differs"):
            write(gated, gate=another)
    assert stored_files(gated, storage) == set()


def test_a_staged_commit_waits_to_be_judged(gated: Table, table: Table) -> None:
    assert outcomes(gated.stage_upsert(GOOD)) == ("staged", None)


def test_who_judges_without_a_suite_needs_a_table_that_requires_one(table: Table) -> None:
    with raised(InvalidInputError, "gate_not_required"):
        table.stage_upsert(GOOD).judge()


# Releasing


def test_a_release_needs_a_name_and_a_reason_and_both_stay(gated: Table) -> None:
    for by, reason in ((" ", "why"), ("ada", ""), ("ada", "a\0"), (None, "why")):
        with raised(InvalidInputError, "invalid_release"):
            gated.release_gate(by=by, reason=reason)  # type: ignore[arg-type]
    with raised(InvalidInputError, "gate_required"):
        gated.set_options({"required_gate": ""})
    assert gated.required_gate is not None
    gated.release_gate(by="bob", reason="the source is gone")
    assert (gated.required_gate, gated.options) == (None, {})
    (kept,) = gated.gate_history()
    assert (kept.required_by, kept.released_by, kept.release_reason) == ("ada", "bob", "the source is gone")
    gated.upsert(BAD)
    with raised(InvalidInputError, "gate_not_required"):
        gated.release_gate(by="eve", reason="once more")


def test_another_gate_takes_the_place_of_a_required_one_by_name_and_reason(lake: Lake, gated: Table) -> None:
    other = lake.register_gate(suite(POSITIVE, name="other gate"))
    for require in (
        lambda: gated.require_gate(other.name, by="bob"),
        lambda: gated.set_options({"required_gate": other.name}),
    ):
        with raised(InvalidInputError, "gate_required"):
            require()
    gated.require_gate(other.name, by="bob", reason="two teams, one gate")
    now, before = gated.gate_history()
    assert (now.name, now.required_by) == ("other gate", "bob")
    assert (before.released_by, before.release_reason) == ("bob", "two teams, one gate")


def test_two_who_require_at_once_leave_one_requirement_and_a_whole_history(table: Table, name: str) -> None:
    given = [suite(POSITIVE.replace("1}", f"{number}}}"), name=name) for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(table.require_gate, given))
    history = table.gate_history()
    assert {each.hash for each in history} == {each.hash for each in given}
    assert [each.released_at is None for each in history] == [True, False, False, False]
    assert table.required_gate == history[0]


def test_what_a_dropped_table_required_goes_with_it(lake: Lake, gated: Table, name: str) -> None:
    gated.upsert(GOOD)
    lake.drop_table(gated.name)
    with raised(NotFoundError, "table_not_found"):
        gated.release_gate(by="bob", reason="it is gone")
    assert gated.name in lake.vacuum(grace=timedelta(0)).dropped_tables
    assert [each.version for each in lake.gates() if each.name == name] == [1]


def open_commits(lake: Lake, table: Table) -> list[Any]:
    return inspect.list_commits(lake.runtime, table._now(), [CommitState.STAGED, CommitState.REJECTED], 10)


# Tables that required a name before suites were registered


def test_a_gate_that_is_required_by_its_name_stays_so_until_its_suite_is_required(
    lake: Lake, table: Table, name: str
) -> None:
    require_by_name(lake, table, name)
    found = table.required_gate
    assert found is not None
    assert (found.name, found.version, found.hash) == (name, None, None)
    with raised(RejectedError, "verdict_missing"):
        table.upsert(GOOD)
    for value in ("", "other"):
        with pytest.raises((InvalidInputError, NotFoundError)):
            table.set_options({"required_gate": value})
    table.set_options({**table.options, "row_group_rows": 7})
    assert table.upsert(BAD, gate=suite(TRIVIAL, name=name)).id == 1
    assert table.require_gate(suite(HAS_AMOUNT, name=name), by="ada").version == 1
    with raised(InvalidInputError, "gate_differs"):
        table.upsert(BAD, gate=suite(TRIVIAL, name=name))


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_no_gate_could_let_through_is_refused_before_anything_is_written(
    lake: Lake, table: Table, storage: StorageSettings, name: str, write: Callable[..., Any]
) -> None:
    table.append(rows((7, 7)))
    before = stored_files(table, storage)
    require_by_name(lake, table, name)
    for options in ({}, {"gate": suite(HAS_AMOUNT, name="another")}):
        with pytest.raises(RejectedError, match=name) as caught:
            write(table, **options)
        assert (caught.value.kind, "gate=" in caught.value.remedy) == ("verdict_missing", True)
    assert (stored_files(table, storage), open_commits(lake, table)) == (before, [])


@pytest.mark.parametrize(
    "write", [*WRITES.values(), *STAGED_WRITES.values()], ids=[*WRITES, *(f"stage {each}" for each in STAGED_WRITES)]
)
def test_a_suite_that_does_not_fit_the_table_is_refused_before_anything_is_written(
    lake: Lake, table: Table, storage: StorageSettings, name: str, write: Callable[..., Any]
) -> None:
    table.append(rows((7, 7)))
    before = stored_files(table, storage)
    unfit = suite("{type: expect_column_values_to_not_be_null, kwargs: {column: price}}", name=name)
    with raised(InvalidInputError, "invalid_suite"):
        write(table, gate=unfit)
    assert (stored_files(table, storage), open_commits(lake, table)) == (before, [])


def test_a_change_of_the_schema_brings_no_rows_to_be_judged(lake: Lake, table: Table, name: str) -> None:
    table.require_gate(
        suite("{type: expect_table_row_count_to_be_between, kwargs: {min_value: 1}}", name=name), by="ada"
    )
    changed = table.evolve(add=[("note", "string")])
    assert (changed.id, lake.staged(changed.commit_id).verdict) == (1, None)


def test_the_release_of_a_name_is_kept_too(lake: Lake, table: Table) -> None:
    require_by_name(lake, table, "old")
    table.release_gate(by="bob", reason="nobody knows what it was")
    (kept,) = table.gate_history()
    assert (kept.name, kept.hash, kept.released_by) == ("old", None, "bob")
    table.upsert(BAD)


def test_a_client_that_knows_no_registered_suites_cannot_take_the_gate_away(lake: Lake, gated: Table) -> None:
    """It only knows the option."""
    text = "update lake.\"table\" set options = options - 'required_gate' where location = %s"
    lake.runtime.catalog.run(lambda db: db.execute(text, (gated.location,)))
    staged = gated.stage_upsert(GOOD)
    with raised(RejectedError, "verdict_missing"):
        staged.publish()
    with raised(InvalidInputError, "gate_required"):
        gated.set_options({"required_gate": ""})
    assert gated.required_gate is not None
