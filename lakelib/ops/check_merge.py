"""Part of checking a spec: whether its merge engine, and keys across partitions, fit its columns and options, and where
not."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lakelib.errors import InvalidInputError
from lakelib.model.options import parse_options
from lakelib.model.schema import TableSchema
from lakelib.ops.create import check_delta_mode
from lakelib.plan.declare import declare_schema
from lakelib.plan.declare_merge import Roles, check_definition, declare_merge
from lakelib.specs.table_spec import TableSpec

Place = tuple[str | int, ...]


def wrong_merge(spec: TableSpec) -> Iterator[tuple[Place, InvalidInputError]]:
    """What is wrong, and in which field. The spec is right otherwise."""
    schema = TableSchema(id=1, columns=declare_schema(spec.columns))
    roles = _roles(spec, schema)
    said = spec.merge.said
    told: Mapping[str, Any] = {"engine": said} if isinstance(said, str) else said
    for place, part in _parts(told):
        try:
            merge, _ = declare_merge(part, schema, roles)
        except InvalidInputError as error:
            yield place, error
            if len(place) < 3 or "groups" in place:
                return
    options = parse_options(spec.options)
    try:
        check_delta_mode(merge, options)
        if options.cross_partition:
            check_definition(schema, roles.key_ids, roles.partition_ids, roles.sequence_ids, merge)
    except InvalidInputError as error:
        yield ("options",), error


def _parts(told: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The engine with more and more of what is said of it: what is wrong first is wrong with the last."""
    engine = {"engine": told["engine"]}
    yield ("merge",), engine
    groups: Sequence[Any] = told.get("groups", ())
    for count in range(1, len(groups) + 1):
        yield ("merge", "groups", count - 1), {**engine, "groups": groups[:count]}
    known = engine
    if "groups" in told:
        known = {**engine, "groups": groups}
        yield ("merge", "groups"), known
    for name in told:
        if name not in ("engine", "groups", "functions"):
            known = {**known, name: told[name]}
            yield ("merge", name), known
    if "functions" in told:
        yield ("merge", "functions"), {**known, "functions": {}}
    functions: Mapping[str, Any] = told.get("functions", {})
    for name in functions:
        same = {other: functions[other] for other in functions if other.casefold() == name.casefold()}
        yield ("merge", "functions", name), {**known, "functions": same}


def _roles(spec: TableSpec, schema: TableSchema) -> Roles:
    def ids(names: Sequence[str]) -> tuple[int, ...]:
        found = (schema.find(name) for name in names)
        return tuple(column.id for column in found if column is not None)

    return Roles(
        key_ids=ids(spec.primary_key), partition_ids=ids(spec.partition_by), sequence_ids=ids(spec.sequence_by)
    )
