"""A table's spec: what a team says in one YAML file of a table that is filled by runs. Read this first.

`load_spec` checks a file as far as it can be without a lake: names, types, lengths of time, and what refers to what.
Every error names the file, the line, the field, what was found and what is expected; all of a file's are said at once.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, LakeError
from lakelib.model.upkeep import TagEnd
from lakelib.specs.folder import find_problems_between
from lakelib.specs.partition_keys import (
    WHOLE,
    column_value,
    format_partition,
    key_of_value,
    parse_partition,
    partition_keys,
)
from lakelib.specs.problems import Problem, describe_problems, problems_of, shown, spec_error
from lakelib.specs.suite import Suite, load_suite
from lakelib.specs.table_checks import find_problems, find_warnings
from lakelib.specs.table_fields import (
    Buckets,
    ChangesView,
    Ddl,
    Engine,
    GivenMerge,
    GivenRead,
    Local,
    Maintenance,
    Merge,
    Names,
    Options,
    Part,
    Partition,
    Publish,
    Retries,
    Review,
    Schedule,
    Source,
    Spark,
    TableName,
    Text,
    ViewName,
    WhenEmpty,
    Write,
)
from lakelib.specs.texts import NamedColumn, fill_places, fill_variables, parse_columns, plain_folder
from lakelib.specs.yaml_text import YamlText, load_yaml, parse_yaml

_TAG_FAMILY = "runs"
"""One for all runs of a table: the tags of a name that a spec does not give any more count, too."""
_ENDINGS = (".yaml", ".yml")
_MAKES_NO_ROWS: Mapping[str, Any] = {
    **dict.fromkeys(
        (
            "description",
            "options",
            "gate",
            "schedule",
            "publish",
            "review",
            "maintenance",
            "engine",
            "local",
            "spark",
            "retries",
        ),
        True,
    ),
    "source": {"arrival": True},
    "write": {"when_empty": True},
}


class TableSpec(Part):
    """A table of the lake: what it is, where its rows come from, what they must pass, and what follows."""

    table: TableName = Field(description="The table as namespace.name, such as shop.orders.")
    description: str = Field(default="", description="What a row of the table is, and who answers for it.")
    columns: Ddl = Field(description="The table's columns in DDL, such as `order_id BIGINT, dt DATE NOT NULL`.")
    primary_key: Names = Field(
        default=(), description="The columns of the key that rows are upserted by. None: append table."
    )
    partition_by: Names = Field(default=(), description="The columns whose values cut the table into partitions.")
    buckets: Buckets = Field(
        default=None, description="A power of two, dynamic (the default for a table with a primary key) or postpone."
    )
    sequence_by: Names = Field(
        default=(),
        description="Of two rows of a key the one that is higher in these columns is newer, whoever came first.",
    )
    merge: GivenMerge = Field(
        default=Merge(engine="deduplicate"),
        json_schema_extra={"default": "deduplicate"},
        description="How versions of a key become one row: deduplicate, first_row, or {engine: partial_update, groups,"
        " on_delete}, {engine: aggregate, functions, retract}; see docs/merge-engines.md.",
    )
    options: Options = Field(
        default={}, description="Table options, such as target_file_bytes. required_gate follows from gate."
    )
    source: Source | None = Field(
        default=None, description="The files that rows come from. null: the transform reads tables."
    )
    transform: Text | None = Field(
        default=None,
        description="A file with one query in Spark SQL over the view `source` and those of reads; relative to the"
        " spec.",
    )
    reads: dict[ViewName, GivenRead] = Field(
        default={},
        description="Tables of the lake that the transform sees, as name of the view: table, or {table, changes}.",
    )
    write: Write = Field(default=Write(), description="How the rows are written.")
    partition: Partition = Field(default=Partition(), description="What part of the table a run is about.")
    gate: Text | None = Field(
        default=None, description="A file with the suite of checks that every commit must pass; relative to the spec."
    )
    schedule: Schedule | None = Field(default=None, description="When runs start. null: by hand only.")
    publish: Publish = Field(default=Publish(), description="What follows once a commit is published.")
    review: Review = Field(default=Review(), description="What becomes of a commit that its gate rejected.")
    maintenance: Maintenance = Field(default=Maintenance(), description="What the maintenance runs do with the table.")
    engine: Engine = Field(
        default="spark",
        description="What reads, transforms and judges: spark; local, the process of the job itself, for small days;"
        " auto, local where the source is small and nothing takes Spark.",
    )
    local: Local = Field(default=Local(), description="The bounds of the work without Spark.")
    spark: Spark = Field(default=Spark(), description="Where Spark runs.")
    retries: Retries = Field(default=Retries(), description="What follows when a task fails for want of a service.")

    _path: Path = PrivateAttr(default=Path())
    _hash: str = PrivateAttr(default="")
    _warnings: tuple[str, ...] = PrivateAttr(default=())

    def model_post_init(self, context: Path | None) -> None:
        """`context` is the file."""
        if context is None:
            return
        self._path = context
        query = self.transform_path
        text = query.read_bytes() if query is not None and os.path.isfile(query) else b""
        unsaid = {} if self.partition.from_changes else {"partition": {"from_changes": True}}  # as if it were not known
        said = self.model_dump_json(exclude={**_MAKES_NO_ROWS, **unsaid})
        self._hash = hashlib.sha256(said.encode() + b"\0" + text).hexdigest()

    @property
    def path(self) -> Path:
        """The file that says all this, absolute."""
        return self._path

    @property
    def hash(self) -> str:
        """Of what makes the rows, the transform's text included: another hash is another way to make them. The gate has
        its own."""
        return self._hash

    @property
    def namespace(self) -> str:
        return self.table.partition(".")[0]

    @property
    def name(self) -> str:
        return self.table.partition(".")[2]

    @property
    def named_columns(self) -> tuple[NamedColumn, ...]:
        return parse_columns(self.columns)

    @property
    def read_tables(self) -> tuple[str, ...]:
        """The tables that the transform sees, each once."""
        return tuple(dict.fromkeys(read.table for read in self.reads.values()))

    @property
    def follows_changes(self) -> bool:
        """Whether its runs go on from where the run before has stopped reading."""
        return any(read.changes is not None for read in self.reads.values())

    def changes_seen(self, view: str) -> ChangesView | None:
        """Which changes a view of the transform shows; None for rows as they are, of which from_changes makes whole
        partitions."""
        return None if self.partition.from_changes else self.reads[view].changes

    @property
    def transform_path(self) -> Path | None:
        return None if self.transform is None else self._path.parent / self.transform

    @property
    def gate_path(self) -> Path | None:
        return None if self.gate is None else self._path.parent / self.gate

    def when_empty(self, *, is_transformed: bool) -> WhenEmpty:
        """What it means that there are no rows: that the source has none, or that the transform made none."""
        if self.source is None or is_transformed:
            return self.write.when_empty or ("publish" if self.source is None else "fail")
        return self.source.when_empty

    def suite(self) -> Suite | None:
        """The gate's suite as its file is now. Raises InvalidInputError naming what is wrong with it."""
        return None if self.gate_path is None else load_suite(self.gate_path)

    def check_key(self, key: str) -> str:
        """The key. Raises InvalidInputError unless it is one of this table's partition keys."""
        try:
            parse_partition(self.partition.every, key)
        except InvalidInputError as error:
            raise InvalidInputError(f"{self.table}: {error.message}", kind=error.kind, remedy=error.remedy) from None
        return key

    def has_key(self, key: str) -> bool:
        """Whether the key is one of this table's."""
        try:
            parse_partition(self.partition.every, key)
        except InvalidInputError:
            return False
        return True

    def key_of(self, moment: date | datetime) -> str:
        """The key of the partition that a moment lies in: "2026-11-18"."""
        return format_partition(self.partition.every, moment)

    def key_of_row(self, values: Mapping[str, Any]) -> str | None:
        """The key of the partition that rows with these values lie in; None for rows that no key means."""
        named = (self.partition.column or "").casefold()
        value = next((value for name, value in values.items() if name.casefold() == named), None)
        return key_of_value(self.partition.every, value)

    @property
    def is_dated_copy(self) -> bool:
        """Whether each run puts a full copy, as of its partition's step, in place of all that is in the table."""
        return self.partition.every != "none" and self.partition.column is None

    def partition_value(self, key: str) -> dict[str, str]:
        """What a partition's rows have in the key's column, as text; nothing for a table that is not cut by time."""
        column = self.partition.column
        if self.check_key(key) == WHOLE or column is None:
            return {}
        known = {named.name.casefold(): named for named in self.named_columns}
        return {column: column_value(self.partition.every, key, known[column.casefold()].type)}

    def source_path(self, key: str, environ: Mapping[str, str]) -> str:
        """Where the files of a partition are. Raises InvalidInputError for a variable that is not set."""
        return self._filled("source.path", self._source.path, key, environ)

    def marker_path(self, key: str, environ: Mapping[str, str]) -> str | None:
        """The file that says that a partition's files are complete; None if none has to.

        A marker's name is in the folder that the path names before its first wildcard.
        """
        marker = self._source.arrival.marker
        if marker is None or "/" in marker:
            return marker and self._filled("source.arrival.marker", marker, key, environ)
        return plain_folder(self.source_path(key, environ)) + marker

    def tag_name(self, key: str, snapshot_id: int) -> str | None:
        """The tag that the spec wants for a snapshot; None for none."""
        tag = self.publish.tag
        return None if tag is None else fill_places(tag.name, {"partition": key, "snapshot": snapshot_id})

    @property
    def tag_end(self) -> TagEnd:
        """How long the tags of runs stay."""
        tag = self.publish.tag
        if tag is None or not tag.has_end:
            return TagEnd()
        keep = tag.keep if isinstance(tag.keep, timedelta) else None
        return TagEnd(keep=keep, keep_last=tag.keep_last, family=_TAG_FAMILY)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed, and perhaps not meant; each names file, line and field."""
        return self._warnings

    @property
    def _source(self) -> Source:
        if self.source is None:
            raise InvalidInputError(
                f"{self._path}: {self.table} has no source of its own: its transform reads tables.",
                kind="no_source",
                remedy="Ask for the source of specs that have one.",
            )
        return self.source

    def _filled(self, field: str, text: str, key: str, environ: Mapping[str, str]) -> str:
        filled = fill_places(text, {"partition": self.check_key(key)})
        return fill_variables(filled, environ, f"{self._path}, field {field}")


def partition_range(spec: TableSpec, start: str, end: str) -> tuple[str, ...]:
    """The keys from the first to the last, both included. Raises InvalidInputError for keys that are none of the
    table's, and for a last one before the first."""
    spec.check_key(start)
    spec.check_key(end)
    return partition_keys(spec.partition.every, start, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFolder:
    specs: tuple[TableSpec, ...]
    """Those that are right, by file name."""
    errors: Mapping[Path, LakeError]
    """What is wrong, by file."""


def load_spec(path: str | PathLike[str], *, with_gate: bool = True) -> TableSpec:
    """The spec of a file. Raises NotFoundError if there is none, InvalidInputError with all that is wrong with it, or
    with the suite of its gate, unless that is to be left aside."""
    file = Path(path).absolute()
    return _load(load_yaml(file), file, with_gate=with_gate)


def parse_spec(content: str, path: str | PathLike[str]) -> TableSpec:
    """As `load_spec`, for text that is at hand: a draft of the file at `path`."""
    file = Path(path).absolute()
    return _load(parse_yaml(content, str(file)), file)


def find_specs(folder: str | PathLike[str]) -> tuple[Path, ...]:
    """The files of a folder that are specs, absolute, by name."""
    return tuple(sorted(file for file in Path(folder).absolute().iterdir() if file.suffix in _ENDINGS))


def scan_specs(folder: str | PathLike[str], *, with_gates: bool = True) -> SpecFolder:
    """All specs of a folder; one that is wrong does not keep the others from being read. Where specs do not go together
    (two of one table, or of one DAG id; a cycle of `schedule.after`), each of them is wrong."""
    files = find_specs(folder)
    specs: dict[Path, TableSpec] = {}
    errors: dict[Path, LakeError] = {}
    for file in files:
        try:
            specs[file] = load_spec(file, with_gate=with_gates)
        except LakeError as error:
            errors[file] = error
    right, known = tuple(specs.values()), _known_tables(specs.values(), errors)
    for file, spec in specs.items():
        problems = find_problems_between(spec, right, known)
        if problems:
            errors[file] = spec_error(load_yaml(file), problems)
    return SpecFolder(specs=tuple(spec for file, spec in specs.items() if file not in errors), errors=errors)


def _known_tables(right: Iterable[TableSpec], wrong: Iterable[Path]) -> frozenset[str] | None:
    """None if a file with a wrong spec does not say which table it is about."""
    said = [_table_of(file) for file in wrong]
    named = [table for table in said if table is not None]
    return frozenset({*named, *(spec.table for spec in right)}) if len(named) == len(said) else None


def _table_of(file: Path) -> str | None:
    """The table that a file with a wrong spec is about, if it says so."""
    try:
        values = load_yaml(file).values
    except LakeError:
        return None
    table = values.get("table") if isinstance(values, dict) else None
    return table if isinstance(table, str) else None


def load_specs(folder: str | PathLike[str]) -> tuple[TableSpec, ...]:
    """All specs of a folder, by file name. Raises InvalidInputError with all that is wrong in any of them."""
    found = scan_specs(folder)
    if found.errors:
        message = "\n".join(error.message for error in found.errors.values())
        raise InvalidInputError(message, kind="invalid_spec", remedy="Correct the files; docs/specs.md has the fields.")
    return found.specs


def _load(yaml: YamlText, file: Path, *, with_gate: bool = True) -> TableSpec:
    if not isinstance(yaml.values, dict):
        raise spec_error(
            yaml, [Problem(place=(), found=shown(yaml.values), expected="fields such as table: shop.orders")]
        )
    try:
        spec = _validate(yaml.values, file)
        problems = find_problems(spec)
    except ValidationError as error:
        problems = [*problems_of(error, TableSpec), *_further_problems(yaml.values, file, error)]
    if problems:
        raise spec_error(yaml, problems)
    if with_gate:
        spec.suite()
    spec._warnings = describe_problems(yaml, list(find_warnings(spec)))
    return spec


def _validate(values: dict[str, Any], file: Path) -> TableSpec:
    return TableSpec.model_validate(values, context=file)


def _further_problems(values: dict[str, Any], file: Path, error: ValidationError) -> list[Problem]:
    """What is wrong besides: in the fields that are right by themselves, taken together."""
    broken = {str(each["loc"][0]) for each in error.errors() if each["loc"]}
    try:
        spec = _validate({name: value for name, value in values.items() if name not in broken}, file)
    except ValidationError:
        return []
    return find_problems(spec, leave_out=broken)
