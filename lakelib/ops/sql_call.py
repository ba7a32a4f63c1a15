"""Use cases: CALL. What tables ask for besides rows, as the methods of these names do it."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError
from lakelib.model.flags import checked_flag
from lakelib.model.table import Snapshot, TableInfo
from lakelib.model.upkeep import DEFAULT_EXPIRE_GRACE, DEFAULT_STAGED_OLDER_THAN
from lakelib.ops import compact, cross_partition, delta, expire, rebucket, snapshots, sql
from lakelib.ops.request import WriteRequest
from lakelib.ops.runtime import Runtime
from lakelib.ops.sql_change import Told, refuse_options, tell
from lakelib.ops.sql_plan import QueryExplanation
from lakelib.plan.sql_call import Call
from lakelib.specs.texts import parse_duration

Done = Snapshot | Mapping[str, Any] | None
Procedure = Callable[[Runtime, TableInfo, Mapping[str, Any], WriteRequest], Done]

_COMMITS = ("rollback",)
"""Those that take what a write does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChange:
    runtime: Runtime
    call: Call
    table: TableInfo

    @property
    def takes_away(self) -> bool:
        return self.call.may_take_away

    def explain(self) -> QueryExplanation:
        said = f"{self._word} {self.table.full_name}"
        match self.call.procedure:
            case "rollback":
                means = repr(snapshots.preview_rollback(self.runtime, self.table.ref, self.call.arguments["to"]))
            case "expire":
                found = _expire(self.runtime, self.table, {**self.call.arguments, "dry_run": True}, WriteRequest())
                means = ", ".join(f"{name} {value}" for name, value in found.items())
            case _:
                means = ", ".join(f"{name} => {value}" for name, value in self.call.arguments.items()) or "as it is due"
        return QueryExplanation(change=f"{said}: {means}")

    def carry_out(self, request: WriteRequest) -> Told:
        if self.call.procedure not in _COMMITS:
            refuse_options(request, self._word)
        done = _PROCEDURES[self.call.procedure](self.runtime, self.table, self.call.arguments, request)
        text, name = self.call.parsed.text, self.table.full_name
        if not isinstance(done, Mapping):
            return tell(text, self._word, name, done)
        return Told(text=text, rows=pa.Table.from_pylist([{"statement": self._word, "table": name, **done}]))

    @property
    def _word(self) -> str:
        return f"CALL {self.call.procedure}"


def plan_call(runtime: Runtime, call: Call) -> CallChange:
    """Raises NotFoundError."""
    return CallChange(runtime=runtime, call=call, table=sql.look_up(runtime, [call.table])[call.table.name])


def _compact(runtime: Runtime, table: TableInfo, given: Mapping[str, Any], _: WriteRequest) -> Done:
    full = checked_flag("full", given.get("full", False))
    return _facts(compact.compact(runtime, table.ref, full=full, where=given.get("where")))


def _rebucket(runtime: Runtime, table: TableInfo, given: Mapping[str, Any], _: WriteRequest) -> Done:
    rewrite = checked_flag("rewrite", given.get("rewrite", True))
    return _facts(rebucket.rebucket(runtime, table.ref, given["buckets"], rewrite=rewrite))


def _tag(runtime: Runtime, table: TableInfo, given: Mapping[str, Any], _: WriteRequest) -> Done:
    end = snapshots.parse_end(_length(given, "keep"), given.get("keep_last"), given.get("family", ""))
    tag = snapshots.set_tag(runtime, table, given["name"], given.get("at"), end)
    return {"tag": tag.name, "snapshot_id": tag.snapshot_id}


def _delete_tag(runtime: Runtime, table: TableInfo, given: Mapping[str, Any], _: WriteRequest) -> Done:
    snapshots.delete_tag(runtime, table, given["name"])
    return {"tag": given["name"]}


def _rollback(runtime: Runtime, table: TableInfo, given: Mapping[str, Any], request: WriteRequest) -> Done:
    return snapshots.rollback(runtime, table.ref, given["to"], request)


def _expire(runtime: Runtime, table: TableInfo, given: Mapping[str, Any], _: WriteRequest) -> Mapping[str, Any]:
    staged = _length(given, "staged_older_than") if "staged_older_than" in given else DEFAULT_STAGED_OLDER_THAN
    rules = expire.parse_rules(given.get("keep_last"), _length(given, "older_than"), staged)
    work = expire.preview if checked_flag("dry_run", given.get("dry_run", False)) else expire.expire
    return _facts(work(runtime, table, rules, DEFAULT_EXPIRE_GRACE))


def _export_delta(runtime: Runtime, table: TableInfo, _: Mapping[str, Any], __: WriteRequest) -> Done:
    return _facts(delta.export_delta(runtime, table.ref))


def _settle_keys(runtime: Runtime, table: TableInfo, _: Mapping[str, Any], __: WriteRequest) -> Done:
    return cross_partition.settle_keys(runtime, table.ref)


_PROCEDURES: Mapping[str, Procedure] = {
    "compact": _compact,
    "rebucket": _rebucket,
    "tag": _tag,
    "delete_tag": _delete_tag,
    "rollback": _rollback,
    "expire": _expire,
    "export_delta": _export_delta,
    "settle_keys": _settle_keys,
}


def _length(given: Mapping[str, Any], name: str) -> timedelta | None:
    """A length of time, which may be a text such as 7d."""
    value = given.get(name)
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} {value!r} is not {error}", kind="invalid_argument", remedy="Write '7d', or INTERVAL '7' DAY."
        ) from None


def _facts(result: Any) -> dict[str, Any]:
    """What is known of a result in one value each; of lists how long they are."""
    found = {each.name: getattr(result, each.name) for each in fields(result) if each.name != "table"}
    return {name: len(value) if isinstance(value, tuple) else value for name, value in found.items()}
