"""Use case: what people write, specs and suites, is checked before anybody runs it. Nothing is written.

Step by step: each file by itself; the specs of a folder beside each other; the suites that specs name, and whether they
fit the columns; whether a spec's engine can do its work. A dry run then looks at the files of a partition, has the
spec's engine compile the transform, and compares the columns that come out with those of the table.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError, NotFoundError, OnlySparkError
from lakelib.model.schema import Column, TableSchema
from lakelib.ops.arrival import Arrival, check_arrival, find_arrival
from lakelib.ops.check_merge import wrong_merge
from lakelib.ops.engine import check_without_spark, engine_instead, query_of
from lakelib.ops.gates import check_requirable
from lakelib.ops.judge import check_suite
from lakelib.plan.changes import told_columns
from lakelib.plan.declare import declare_schema
from lakelib.plan.local_query import translate_query
from lakelib.rows.align import merge_source_columns, plan_alignment
from lakelib.rows.types import arrow_type, plain_schema
from lakelib.rows.unite import TargetColumns
from lakelib.specs.suite import Suite, load_suite
from lakelib.specs.table_fields import SOURCE_VIEW, Source
from lakelib.specs.table_spec import SpecFolder, TableSpec, find_specs, load_spec, scan_specs
from lakelib.specs.texts import parse_columns
from lakelib.specs.yaml_text import YamlText, load_yaml
from lakelib.storage.filesystem import Storage
from lakelib.work.source_reader import SourceReader, find_obstacle
from lakelib.work.source_rows import uniform_columns

if TYPE_CHECKING:
    from lakelib.work.spark.query import Compile

FindColumns = Callable[[str], pa.Schema]
"""The columns of a table that a transform reads. Raises a LakeError for one that nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    path: Path
    spec: TableSpec | None = None
    """None for a suite, and for a spec that is wrong."""
    errors: tuple[str, ...] = ()
    """A line each, with file, line and what is expected."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What a dry run has seen of a spec and a partition."""

    table: str
    partition: str
    files: int
    source_columns: Mapping[str, str]
    """Those of the source's files, with their types."""
    columns: Mapping[str, str]
    """Those of the rows that the table would get."""
    note: str = ""
    """What could not be looked at, and why."""


def check_files(paths: Iterable[Path]) -> tuple[CheckedFile, ...]:
    """Each file, those of the folders or of what is below them, and the suites that specs name, once each. A path where
    nothing is, is wrong. Raises NotFoundError for a folder that has none."""
    chosen = [file for path in paths for file in (_files_below(path) if path.is_dir() else [path.absolute()])]
    scan = cache(lambda folder: scan_specs(folder, with_gates=False))
    found: dict[Path, CheckedFile] = {}
    for file in chosen:
        try:
            yaml = load_yaml(file)
        except LakeError as error:
            found[file.resolve()] = CheckedFile(path=file, errors=(error.message,))
            continue
        if isinstance(yaml.values, dict) and "expectations" in yaml.values and "table" not in yaml.values:
            found.setdefault(file.resolve(), _checked_suite(file, lambda suite: check_suite(suite)))
            continue
        found[file.resolve()] = _checked_spec(file, yaml, scan(file.parent))
        gate, columns = _gate_of(file, yaml.values), _columns_of(yaml.values)
        if gate is not None:
            _add(found, _checked_suite(gate, partial(check_requirable, columns=columns)))
    return tuple(found.values())


def _files_below(folder: Path) -> list[Path]:
    """Those of the folder; where there are none, of all folders below but hidden ones."""
    if found := [*find_specs(folder)]:
        return found
    below = sorted(each for each in folder.rglob("*") if each.is_dir())
    shown = (each for each in below if not any(part.startswith(".") for part in each.relative_to(folder).parts))
    found = [file for each in shown for file in find_specs(each)]
    if not found:
        raise NotFoundError(
            f"There is no spec and no suite in {folder}, nor below it.",
            kind="nothing_to_check",
            remedy="Name the folder of your tables. Specs and suites are files that end in .yaml or .yml.",
        )
    return found


def _checked_spec(file: Path, yaml: YamlText, folder: SpecFolder) -> CheckedFile:
    error = folder.errors.get(file)
    spec = next((spec for spec in folder.specs if spec.path == file), None)
    if spec is None and error is None:  # a file whose name does not end as those of specs do
        try:
            spec = load_spec(file, with_gate=False)
        except LakeError as raised:
            error = raised
    errors = (
        *(error.message.splitlines() if error is not None else ()),
        *_wrong_types(yaml),
        *_wrong_query(yaml, spec),
    )
    errors = errors or (*_wrong_merge(yaml, spec), *_wrong_engine(yaml, spec))
    if errors or spec is None:
        return CheckedFile(path=file, errors=errors)
    return CheckedFile(path=file, spec=spec, warnings=spec.warnings)


def _wrong_types(yaml: YamlText) -> Iterator[str]:
    """What only the parser of types finds in the columns of a spec; whether they are columns at all, its model says."""
    values = yaml.values if isinstance(yaml.values, dict) else {}
    source = values.get("source")
    given: dict[tuple[str, ...], Any] = {("columns",): values.get("columns")}
    if isinstance(source, dict):
        given[("source", "columns")] = source.get("columns")
    for place, text in given.items():
        try:
            if isinstance(text, str) and parse_columns(text):
                declare_schema(text)
        except LakeError as error:
            yield f"{yaml.where(place)}, field {'.'.join(place)}: {error}"
        except ValueError:  # the model has said so
            continue


def _wrong_merge(yaml: YamlText, spec: TableSpec | None) -> Iterator[str]:
    for place, error in () if spec is None else wrong_merge(spec):
        yield f"{yaml.where(place)}, field {'.'.join(map(str, place))}: {error}"


def _wrong_query(yaml: YamlText, spec: TableSpec | None) -> Iterator[str]:
    where = f"{yaml.where(('transform',))}, field transform"
    if spec is None or spec.transform_path is None:
        return
    try:
        if not spec.transform_path.read_text(encoding="utf-8").strip():
            yield f"{where}: found an empty file; expected a query."
    except (OSError, UnicodeDecodeError) as error:
        yield f"{where}: {spec.transform_path} cannot be read: {error}."


def _wrong_engine(yaml: YamlText, spec: TableSpec | None) -> Iterator[str]:
    """What takes Spark whatever the files hold, of a spec that does without it and is right otherwise."""
    if spec is None or spec.engine != "local":
        return
    try:
        check_without_spark(spec)
    except OnlySparkError as reason:
        yield (
            f"{yaml.where(('engine',))}, field engine: found local, and it takes Spark for {reason.message}; expected"
            f" spark or auto. {reason.remedy}".rstrip()
        )


def _gate_of(file: Path, values: Any) -> Path | None:
    """The suite that a spec names, right or wrong, if it is there; that there is none the spec's own check says."""
    gate = values.get("gate") if isinstance(values, Mapping) else None
    if not isinstance(gate, str) or "\0" in gate:
        return None
    path = Path(os.path.normpath(file.parent / gate))
    return path if path.is_file() else None


def _columns_of(values: Any) -> tuple[Column, ...] | None:
    """None where rows may bring more than the spec says, or what it says is wrong."""
    values = values if isinstance(values, dict) else {}
    write = values.get("write")
    if isinstance(write, dict) and write.get("merge_schema"):
        return None
    try:
        return declare_schema(values.get("columns"))
    except LakeError:
        return None


def _checked_suite(file: Path, check: Callable[[Suite], None]) -> CheckedFile:
    from lakelib.gates.lint import check_problems  # not everybody judges

    try:
        check(load_suite(file, check_problems))
    except InvalidInputError as error:
        lines = error.message.splitlines()
        return CheckedFile(path=file, errors=tuple(line if str(file) in line else f"{file}: {line}" for line in lines))
    return CheckedFile(path=file)


def _add(found: dict[Path, CheckedFile], suite: CheckedFile) -> None:
    """A suite that several specs name has to fit the columns of each."""
    key = suite.path.resolve()
    before = found.get(key, suite)
    errors = tuple(dict.fromkeys((*before.errors, *suite.errors)))
    found[key] = CheckedFile(path=before.path, errors=errors)


# The dry run


def try_spec(
    spec: TableSpec,
    partition: str,
    environ: Mapping[str, str],
    storage: Storage,
    find_columns: FindColumns,
    compiling: "Callable[[], Compile]",
) -> Tried:
    """Looks at the partition's files, and at what the transform makes of their columns. Raises as the partition's run
    would, as far as it can be known without reading rows: NotFoundError for a source that has not arrived,
    InvalidInputError for columns and a query that do not fit."""
    spec.check_key(partition)
    columns = declare_schema(spec.columns)
    seen = Tried(table=spec.table, partition=partition, files=0, source_columns={}, columns={})
    source = None
    if spec.source is not None:
        arrival = find_arrival(storage, spec, partition, environ)
        check_arrival(spec, partition, arrival)
        seen = replace(seen, files=len(arrival.files))
        declared = declare_schema(spec.source.columns) if spec.source.columns else ()
        obstacle = find_obstacle(spec.source.format.lower(), spec.source.options, declared or columns)
        if obstacle:
            return replace(seen, note=f"only Spark's own reader knows the columns of the files, for {obstacle}")
        source = _look_into(spec, spec.source, storage, arrival, declared, columns)
        seen = replace(seen, source_columns=_types(source))
    given = source
    if spec.transform_path is not None:
        views = {} if source is None else {SOURCE_VIEW: source}
        for view, read in spec.reads.items():
            told = told_columns(spec.changes_seen(view))
            views[view] = pa.schema([*find_columns(read.table), *plain_schema(told)])
        given = _compile(spec, partition, views, compiling)
    assert given is not None, "a spec has a source or a transform"
    _check_columns(spec, columns, given)
    return replace(seen, columns=_types(given))


def _compile(
    spec: TableSpec, partition: str, views: Mapping[str, pa.Schema], compiling: "Callable[[], Compile]"
) -> pa.Schema:
    """The columns that the transform gives, by Spark only where the spec's engine is Spark, or takes it."""
    if spec.engine != "spark":
        known = {
            view: [(column.name, column.type) for column in uniform_columns(schema)] for view, schema in views.items()
        }
        try:
            check_without_spark(spec)
            made = translate_query(query_of(spec), known, partition)
            return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in made.columns])
        except OnlySparkError as reason:
            engine_instead(spec, reason)
    return compiling()(query_of(spec), views, partition)


def _look_into(
    spec: TableSpec,
    source: Source,
    storage: Storage,
    arrival: Arrival,
    declared: tuple[Column, ...],
    columns: tuple[Column, ...],
) -> pa.Schema:
    """The columns of all files."""
    reader = SourceReader.of(source.format.lower(), source.options, None, declared, _target(spec, columns))
    looked = [reader.look_into(storage, file) for file in arrival.files]
    return reader.united([file for file in looked if file is not None])[1]


def _target(spec: TableSpec, columns: tuple[Column, ...]) -> TargetColumns:
    keys = _folded((*spec.primary_key, *spec.partition_by))
    not_null = {column.name.casefold() for column in columns if not column.nullable}
    return TargetColumns(
        columns=columns,
        roles=frozenset({*keys, *_folded(spec.sequence_by), *not_null}),
        fixed=keys,
        explicit_cast=spec.write.explicit_cast,
        merge_schema=spec.write.merge_schema,
    )


def _check_columns(spec: TableSpec, columns: tuple[Column, ...], given: pa.Schema) -> None:
    """Raises InvalidInputError for rows that the table would not take."""
    present = _folded(given.names)
    filled = {spec.partition.column.casefold()} - present if spec.partition.column else set()
    missing = [name for name in (*spec.partition_by, *spec.sequence_by) if name.casefold() not in present | filled]
    if missing:
        raise InvalidInputError(
            f"The rows for {spec.table} lack the column {missing[0]!r}.",
            kind="missing_column",
            remedy="Add it to the files, or to what the transform selects.",
        )
    table = TableSchema(id=1, columns=columns)
    whole = _with_columns(given, [column for column in columns if column.name.casefold() in filled])
    fixed = frozenset(
        column.id for column in columns if column.name.casefold() in _folded((*spec.primary_key, *spec.partition_by))
    )
    if spec.write.merge_schema:
        table = (
            merge_source_columns(
                whole, table, len(columns) + 1, explicit_cast=spec.write.explicit_cast, fixed_ids=fixed
            )
            or table
        )
    keys = frozenset(column.id for column in columns if column.name.casefold() in _folded(spec.primary_key))
    plan_alignment(whole, table, required_ids=keys, explicit_cast=spec.write.explicit_cast)


def _with_columns(given: pa.Schema, more: Sequence[Column]) -> pa.Schema:
    return pa.schema([*given, *(pa.field(column.name, arrow_type(column.type)) for column in more)])


def columns_of(specs: Sequence[TableSpec], elsewhere: FindColumns) -> FindColumns:
    """The columns of tables: as their specs say where there is one, else as they are."""
    known = {spec.table: spec for spec in specs}

    def find(table: str) -> pa.Schema:
        spec = known.get(table)
        return elsewhere(table) if spec is None else plain_schema(declare_schema(spec.columns))

    return find


def _folded(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.casefold() for name in names)


def _types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}
