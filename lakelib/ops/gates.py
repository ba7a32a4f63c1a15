"""Use cases: suites are registered, tables require them, and are released from them by name and reason.

What a table requires is changed under its lock, as its commits are published: a commit is judged by what is required at
the moment at which it becomes visible.
"""

from collections.abc import Sequence
from os import PathLike
from uuid import UUID

from lakelib.catalog import gates, tables
from lakelib.errors import InvalidInputError, NotFoundError, RejectedError, RetryableError
from lakelib.model.commit import Refusal
from lakelib.model.gate import GateRequirement, RegisteredSuite, RequiredSuite
from lakelib.model.schema import Column
from lakelib.model.table import TableInfo, TableRef
from lakelib.model.text import is_said
from lakelib.ops.judge import Judging, check_suite, open_gate, open_registered
from lakelib.ops.patience import MOST_CHANGES, Overtaken, do_again
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.specs.suite import Suite, suite_error, suite_text

_LONGEST_NAME = 200

Gate = str | PathLike[str] | Suite


def register(runtime: Runtime, gate: Gate, by: str | None) -> RegisteredSuite:
    """The suite under a version of its name: the next one, or that under which it was registered before. Raises
    InvalidInputError that names all that is wrong in it."""
    _check_said(by=by)
    suite = open_gate(gate)
    if len(suite.name) > _LONGEST_NAME:
        raise suite_error([f"the name {suite.name[:20]!r}… of a gate has more than {_LONGEST_NAME} letters."])
    found = gates.find_suite(runtime.catalog, suite.name, suite.hash)
    if found is not None:
        return found
    check_suite(suite)
    return gates.register_suite(
        runtime.catalog,
        name=suite.name,
        suite_hash=suite.hash,
        text=suite_text(suite),
        critical_checks=suite.critical_checks,
        by=by,
    )


def list_gates(runtime: Runtime) -> list[RegisteredSuite]:
    """By name, the newest version first."""
    return gates.list_suites(runtime.catalog)


def require(runtime: Runtime, ref: TableRef, gate: Gate, by: str | None, reason: str | None) -> GateRequirement:
    """The table requires the newest version of the gate of that name, or the suite, which is registered if it was not.

    Raises NotFoundError for a name under which nothing is registered; InvalidInputError for a suite that has no
    critical check or does not fit the table, and where another gate is required and no reason is given to put this in
    its place.
    """
    _check_said(by=by, reason=reason)
    suite = find_registered(runtime, gate) if isinstance(gate, str) else register(runtime, gate, by)

    def attempt() -> GateRequirement | Overtaken:
        table = tables.load_table(runtime.catalog, ref)
        if table.required_suite == suite.required:
            held = _requirement_of(runtime, table)
        else:
            check_requirable(open_registered(suite), table.schema.columns)
            _check_replaceable(table, suite.name, by, reason)
            held = gates.require_suite(runtime.catalog, table, suite, by=by, reason=reason)
        return held or Overtaken(gate_changed(ref))

    return do_again(attempt, most_tries=MOST_CHANGES)


def release(runtime: Runtime, ref: TableRef, by: str, reason: str) -> None:
    """The table requires no gate. Who has said so and why stays in the catalog. Raises InvalidInputError without a name
    and a reason, and where none is required."""
    if not is_said(by) or not is_said(reason):
        raise InvalidInputError(
            f"by is {by!r} and reason is {reason!r}.",
            kind="invalid_release",
            remedy="Say who releases the table from its gate, and why, both in text, without NUL characters.",
        )
    if not gates.release(runtime.catalog, ref, by=by, reason=reason):
        raise InvalidInputError(
            f"Table {ref.full_name} requires no gate.",
            kind="gate_not_required",
            remedy="There is nothing to release it from.",
        )


def find_requirement(runtime: Runtime, ref: TableRef) -> GateRequirement | None:
    """What the table requires at this moment."""
    return _requirement_of(runtime, tables.load_table(runtime.catalog, ref))


def _requirement_of(runtime: Runtime, table: TableInfo) -> GateRequirement | None:
    if table.required_suite is not None:
        return next((each for each in list_requirements(runtime, table) if each.released_at is None), None)
    return GateRequirement(name=table.options.required_gate) if table.options.required_gate else None


def list_requirements(runtime: Runtime, table: TableInfo) -> list[GateRequirement]:
    """What the table requires by hash, and what it has required until it was released; the newest first."""
    return gates.list_requirements(runtime.catalog, table.ref)


def find_registered(runtime: Runtime, name: str) -> RegisteredSuite:
    """The newest version of that name. Raises NotFoundError."""
    found = gates.find_suite(runtime.catalog, name)
    if found is None:
        raise NotFoundError(
            f"No gate {name!r} is registered: a name alone is none.",
            kind="gate_not_registered",
            remedy="Register its suite: lake.register_gate(PATH, by=…), or `lake gate register FILE`; then require it.",
        )
    return found


# What may be required, and what a write may bring


def check_requirable(suite: Suite, columns: Sequence[Column] | None) -> None:
    """Raises InvalidInputError for a suite that lets everything pass, and one that does not fit the columns."""
    if not suite.critical_checks:
        raise InvalidInputError(
            f"Gate {suite.name!r} has no critical check: it lets everything pass.",
            kind="gate_without_critical",
            remedy="Give one of its checks the severity critical, and register it again.",
        )
    check_suite(suite, columns)


def require_by_option(runtime: Runtime, table: TableInfo, name: str) -> None:
    """What it means to set the option `required_gate` to another value than it has. Raises InvalidInputError for a
    value that would take away what is required."""
    if not name:
        raise _is_required(table, "release it, by name and reason: table.release_gate(by=…, reason=…)")
    require(runtime, table.ref, name, None, None)


def gate_of(runtime: Runtime, table: TableInfo, request: WriteRequest) -> Judging | None:
    """How a write is judged: by the gate that it brings, else by the suite that the table requires, as it was
    registered. Raises as `check_gate` does, and RejectedError where what the table requires is known by its name alone,
    and the write brings no suite of that name."""
    check_gate(table, request)
    required = table.required_suite
    if required is None:
        _check_named(table, request.judging)
    if request.judging is not None or required is None:
        return request.judging
    suite = gates.find_suite(runtime.catalog, required.name, required.hash)
    assert suite is not None, "what is required stays registered"
    return Judging(suite=open_registered(suite), session=request.session)


def required_of(runtime: Runtime, commit_id: UUID) -> Suite:
    """The suite that the commit's table requires. Raises InvalidInputError if it requires none by hash."""
    found = gates.find_suite_required_of(runtime.catalog, commit_id)
    if found is None:
        raise InvalidInputError(
            f"The table of commit {commit_id} requires no registered suite.",
            kind="gate_not_required",
            remedy="Say which suite is to judge, or require one: table.require_gate(…).",
        )
    return open_registered(found)


def check_gate(table: TableInfo, request: WriteRequest) -> None:
    """Raises InvalidInputError for a write that brings another gate than the one that would let it pass."""
    required = table.required_suite
    if request.judging is None or required is None or _is(request.judging.suite, required):
        return
    suite = request.judging.suite
    raise InvalidInputError(
        f"Table {table.full_name} requires version {required.version} of gate {required.name!r} (suite"
        f" {required.hash}), and the write brings gate {suite.name!r} (suite {suite.hash}).",
        kind="gate_differs",
        remedy="Leave gate out: the required suite judges by itself. If this one is to be required from now on:"
        " table.require_gate(…).",
    )


def _check_named(table: TableInfo, judging: Judging | None) -> None:
    name = table.options.required_gate
    if not name or (judging is not None and judging.suite.name == name):
        return
    brought = "no suite" if judging is None else f"gate {judging.suite.name!r}"
    raise RejectedError(
        f"Table {table.full_name} requires the gate {name!r} by its name alone, and the write brings {brought}.",
        kind=Refusal.VERDICT_MISSING.value,
        remedy="Say its suite: gate=PATH, in jobs --gate PATH. Or have the table require it, registered: then writes"
        f" are judged by it without (`lake gate register`, `lake gate require {table.full_name} {name}`).",
    )


def _is(suite: Suite, required: RequiredSuite) -> bool:
    return (suite.name, suite.hash) == (required.name, required.hash)


def _check_replaceable(table: TableInfo, name: str, by: str | None, reason: str | None) -> None:
    """Another version of a gate takes its place by itself; another gate by a person who says why."""
    if table.options.required_gate in ("", name) or (by is not None and reason is not None):
        return
    raise _is_required(table, f"say who and why: table.require_gate({name!r}, by=…, reason=…)")


def _is_required(table: TableInfo, what_to_do: str) -> InvalidInputError:
    return InvalidInputError(
        f"Table {table.full_name} requires the gate {table.options.required_gate!r}.",
        kind="gate_required",
        remedy=f"If that is not to be so any more, {what_to_do}.",
    )


def gate_changed(table: TableRef) -> RetryableError:
    return RetryableError(
        f"What gate {table.full_name} requires is being changed by others all the time.",
        kind="gate_changed",
        remedy="Try again.",
    )


def _check_said(**given: str | None) -> None:
    for name, text in given.items():
        if text is not None and not is_said(text):
            raise InvalidInputError(
                f"{name} is {text!r}.",
                kind="invalid_approval",
                remedy="Give text that is not blank, without NUL characters and lone surrogates.",
            )
