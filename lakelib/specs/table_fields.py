"""The parts of a table's spec, as pydantic models. The descriptions are what people see in their editors.

A validator's ValueError says what is expected, and nothing else: the message around it says where and what was found.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Annotated, Any, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)

from lakelib.model.options import MIB
from lakelib.model.table import MAX_DEPTH
from lakelib.specs import texts
from lakelib.specs.calendar import parse_cron
from lakelib.specs.partition_keys import Step
from lakelib.specs.texts import check_path_places, check_places, check_variables, parse_columns

_NAME_PART = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}"
TABLE_PATTERN = rf"^{_NAME_PART}\.{_NAME_PART}$"
_VIEW_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
SOURCE_VIEW = "source"
TAG_PLACES = ("partition", "snapshot")
FOREVER = "forever"
MOST_KEPT = 2**31 - 1


class Part(BaseModel):
    """Frozen; a field that is not known is an error, and so is a value of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


def _matching(pattern: str, expected: str) -> Callable[[str], str]:
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if not compiled.match(text) or text.endswith("\n"):
            raise ValueError(expected)
        return text

    return check


def _checked(check: Callable[[str], object]) -> Callable[[str], str]:
    def keep(text: str) -> str:
        check(text)
        return text

    return keep


def _duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(texts.EXPECTED_LENGTH)
    return texts.parse_duration(value)


def _longer_than_nothing(length: timedelta) -> timedelta:
    if not length:
        raise ValueError(f"{texts.EXPECTED_LENGTH}, and not none at all")
    return length


def _buckets(value: Any) -> Any:
    if value is None or value in ("dynamic", "postpone"):
        return value
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and value.bit_count() == 1
        and 0 < value <= 1 << MAX_DEPTH
    ):
        return value
    raise ValueError(f"a power of two up to {1 << MAX_DEPTH}, dynamic or postpone")


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise ValueError("the name of a time zone, such as UTC or Europe/Berlin") from None
    return name


def _view(name: str) -> str:
    if name == SOURCE_VIEW:
        raise ValueError(f"another name than {SOURCE_VIEW!r}, which is the view of the source's own rows")
    return name


def _marker(text: str) -> str:
    if not text.strip() or text.endswith("/"):
        raise ValueError("the name of a file, such as _READY, or a whole path")
    return text


def _url(text: str) -> str:
    if not re.match(r"https?://[^/\s]+|\$\{", text):
        raise ValueError("an address that begins with http:// or https://")
    return text


Text = Annotated[str, Field(min_length=1)]
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(texts.format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": texts.LENGTH_PATTERN, "examples": ["30s", "6h", "7d"]}),
]
SomeDuration = Annotated[Duration, AfterValidator(_longer_than_nothing)]
_TABLE_EXPECTED = 'a table as namespace.name, such as "shop.orders"'
_named_table = _matching(TABLE_PATTERN, _TABLE_EXPECTED)
TableName = Annotated[
    str,
    AfterValidator(_named_table),
    Field(json_schema_extra={"pattern": TABLE_PATTERN}),
]
ChangesView = Literal["latest", "net", "all"]


class Read(Part):
    """A table that the transform sees. In YAML its name alone will do."""

    table: TableName = Field(description="The table as namespace.name, such as shop.orders.")
    changes: ChangesView | None = Field(
        default=None,
        description="The transform sees only what has changed since the run before: latest is each key as it is now,"
        " net what differs, with the rows as they were before, all every row and delete of each commit. null: the whole"
        " table.",
    )
    keep_for: Duration | None = Field(
        default=None,
        description="How long history that no run has read yet is kept from expiry. null: 7 days, or as the consumer"
        " has been told by others.",
    )


def _read(value: Any) -> Any:
    if isinstance(value, str):
        return {"table": _named_table(value)}
    if isinstance(value, Mapping | Read):
        return value
    raise ValueError(f"{_TABLE_EXPECTED}, or {{table: shop.orders, changes: latest}}")


def _read_text(read: Read) -> Any:
    """Of what makes the rows: how long history is kept makes none."""
    return read.table if read.changes is None else {"table": read.table, "changes": read.changes}


GivenRead = Annotated[
    Read,
    BeforeValidator(_read, json_schema_input_type=TableName | Read),
    PlainSerializer(_read_text),
]
ViewName = Annotated[
    str, AfterValidator(_matching(_VIEW_PATTERN, "a name of letters, digits and _")), AfterValidator(_view)
]
Ddl = Annotated[Text, AfterValidator(_checked(parse_columns))]
Names = Annotated[tuple[Text, ...], Field(strict=False)]
TableNames = Annotated[tuple[TableName, ...], Field(strict=False, min_length=1)]
Buckets = Annotated[
    int | str | None,
    BeforeValidator(_buckets),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"enum": ["dynamic", "postpone"]}, {"type": "null"}]}),
]
Engine = Literal["spark", "local", "auto"]


class SequenceGroup(Part):
    """Columns that are replaced together, in an order of their own."""

    sequence: Names = Field(min_length=1, description="The columns whose values are the order.")
    columns: Names = Field(min_length=1, description="The columns that are replaced together.")


EngineName = Literal["deduplicate", "first_row", "partial_update", "aggregate"]
_ENGINE_TAKES: Mapping[str, tuple[str, ...]] = {
    "partial_update": ("groups", "on_delete"),
    "aggregate": ("functions", "retract"),
}


class Merge(Part):
    """How versions of a key become one row. In YAML the engine's name alone will do. Which engine takes what, and
    whether it fits the columns, is said by who creates the table, and by who checks the spec."""

    engine: EngineName = Field(description="The merge engine.")
    groups: Annotated[tuple[SequenceGroup, ...], Field(strict=False)] = Field(
        default=(), description="Of partial_update: columns that are replaced together, in an order of their own."
    )
    on_delete: Literal["row", "refuse", "groups"] = Field(
        default="row", description="Of partial_update: a delete takes the row, is refused, or empties the groups."
    )
    functions: dict[Text, Text] = Field(
        default={},
        description="Of aggregate, by column: sum, count, min, max, … Columns without one have the newest value.",
    )
    retract: bool = Field(default=False, description="Of aggregate: whether deletes by key take values back.")

    @property
    def said(self) -> str | dict[str, Any]:
        """As `create_table` takes it."""
        names = {*_ENGINE_TAKES.get(self.engine, ()), *self.model_fields_set, "engine"}
        return self.engine if self.model_fields_set == {"engine"} else self.model_dump(mode="json", include=names)


def _merge(value: Any) -> Any:
    if isinstance(value, str):
        return {"engine": value}
    if isinstance(value, Mapping | Merge):
        return value
    raise ValueError(f"the name of a merge engine: {', '.join(get_args(EngineName))}; or {{engine: aggregate, …}}")


GivenMerge = Annotated[
    Merge,
    BeforeValidator(_merge, json_schema_input_type=EngineName | Merge),
    PlainSerializer(lambda merge: merge.said),
]
WhenEmpty = Literal["fail", "skip", "publish"]
CronText = Annotated[str, AfterValidator(_checked(parse_cron))]
WithVariables = Annotated[Text, AfterValidator(_checked(check_variables))]
PathText = Annotated[WithVariables, AfterValidator(_checked(check_path_places))]


def _texts(value: Any) -> Any:
    """YAML reads `header: true` as no text; options are texts all the same."""
    if not isinstance(value, Mapping):
        return value
    return {name: _option_text(given) for name, given in value.items()}


def _option_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Options = Annotated[
    dict[str, str],
    BeforeValidator(_texts),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
]


def _without_environment(options: dict[str, str]) -> dict[str, str]:
    """Spark would fill the variable in, whichever it is."""
    if any("${env:" in value.casefold() for value in options.values()):
        raise ValueError("values without ${env:…}")
    return options


class Arrival(Part):
    """When a partition of the source is complete, and how long to wait for that."""

    marker: Annotated[str, AfterValidator(_marker), AfterValidator(_checked(check_path_places))] | None = Field(
        default="_READY",
        description="A file that says that the others are complete: its name, beside them, or a whole path, in which"
        " {partition} and ${NAME} are filled in. null: one file that matches is enough.",
    )
    timeout: SomeDuration = Field(default=timedelta(hours=6), description="How long a run waits for the source.")
    poll: SomeDuration = Field(default=timedelta(seconds=10), description="How often a run looks while it waits.")


class Source(Part):
    """The files that a partition's rows come from."""

    format: Text = Field(
        default="parquet", description="parquet, csv, json (one object a line), or another format of Spark's."
    )
    path: PathText = Field(
        description="Files, a folder that ends with a slash, or a pattern of either. {partition} is the key of the"
        " run's partition; ${NAME} is a variable of the environment that the work runs in: LANDING, LAKE_VAR_…, or one"
        " that LAKE_SPEC_VARIABLES lists.",
    )
    options: Options = Field(default={}, description="Options of Spark's reader for these files, such as header: true.")
    columns: Ddl | None = Field(
        default=None, description="The files' columns in DDL; only these are read. null: the table's own, by name."
    )
    arrival: Arrival = Field(
        default=Arrival(), description="When the files are complete, and how long to wait for them."
    )
    when_empty: WhenEmpty = Field(
        default="fail",
        description="What a source without rows means: fail is an error, skip commits nothing, publish commits that"
        " there are none (an overwrite empties its target).",
    )


class Write(Part):
    """How the rows are written to the table."""

    mode: Literal["append", "upsert", "overwrite"] = Field(
        default="upsert",
        description="append adds rows, upsert puts each in place of the one of its primary key, overwrite puts all in"
        " place of what was there.",
    )
    merge_schema: bool = Field(
        default=False,
        description="New nullable columns and wider types, of the rows or of this spec, extend the table; columns that"
        " this spec declares nullable become so, and get its comments.",
    )
    explicit_cast: bool = Field(default=True, description="Values become the table's types if each converts exactly.")
    partitions: Literal["key", "dynamic", "all"] = Field(
        default="key",
        description="What an overwrite replaces: key is the run's partition, dynamic the partitions that the rows are"
        " in, all the whole table. Other modes replace nothing.",
    )
    when_empty: WhenEmpty | None = Field(
        default=None,
        description="What it means that the transform gives no rows, in the same words as source.when_empty. null: fail"
        " where the source has rows, publish where there is no source.",
    )


class Partition(Part):
    """What part of the table a run is about."""

    column: Text | None = Field(
        default=None,
        description="The partition column that holds the key. Rows that lack the column get the run's key. null beside"
        " every: day: each day brings a full copy, which an overwrite of partitions: all puts in place of the last.",
    )
    every: Step = Field(default="none", description="How far apart the keys are. none: the table has the one key all.")
    strict: bool = Field(
        default=False,
        description="Rows of other partitions than the run's are an error. An overwrite by key always is strict.",
    )
    from_changes: bool = Field(
        default=False,
        description="A run makes those partitions anew that the changes of what it reads have touched, from all rows of"
        " these, found by the column of the same name. Else the one of its key.",
    )


class Schedule(Part):
    """When runs start: by the clock (cron), or when other tables change (after)."""

    cron: CronText | None = Field(
        default=None,
        description="Five fields (minute, hour, day of month, month, day of week), or @daily and its like.",
        examples=["0 2 * * *", "@daily"],
    )
    timezone: Annotated[str, AfterValidator(_time_zone)] = Field(default="UTC", description="The time zone of cron.")
    start: date | None = Field(default=None, description="The first day with runs, such as 2026-11-01.")
    catchup: bool = Field(default=False, description="Whether the runs between start and now are made up for.")
    catch_up_keys: bool = Field(
        default=False,
        description="cron need not tick once for each partition: a tick is about all that ended since the tick before.",
    )
    after: TableNames | None = Field(
        default=None,
        description="A run starts when a new snapshot of one of these tables was published, and reads just that.",
    )


class HttpReport(Part):
    """A POST of {params, table, path, partition} that must be answered with the result SUCCESS."""

    url: Annotated[WithVariables, AfterValidator(_url)] = Field(description="Where to post; ${NAME} is filled in.")
    params: dict[str, Any] = Field(default={}, description="Sent along as they are.")


class MarkDone(Part):
    """One way to say that a partition is complete. In YAML a name alone will do, but for http_report."""

    kind: Literal["success_file", "done_partition", "http_report"] = Field(description="The way.")
    http_report: HttpReport | None = Field(default=None, description="For http_report: where to report.")


MARK_DONE_EXPECTED = "success_file, done_partition, or http_report: {url: …}"


def _mark_done(value: Any) -> Any:
    if value in ("success_file", "done_partition"):
        return {"kind": value}
    if isinstance(value, Mapping) and list(value) == ["http_report"]:
        return {"kind": "http_report", **value}
    if isinstance(value, MarkDone):
        return value
    raise ValueError(MARK_DONE_EXPECTED)


_MARK_DONE_SCHEMA = {
    "anyOf": [
        {"enum": ["success_file", "done_partition"]},
        {
            "type": "object",
            "properties": {"http_report": HttpReport.model_json_schema()},
            "required": ["http_report"],
            "additionalProperties": False,
        },
    ]
}


def _keep(value: Any) -> Any:
    if value is None or value == FOREVER:
        return value
    try:
        return _longer_than_nothing(_duration(value))
    except ValueError as error:
        raise ValueError(f"{error}, or {FOREVER}") from None


def _keep_text(keep: timedelta | str | None) -> str | None:
    return texts.format_duration(keep) if isinstance(keep, timedelta) else keep


Keep = Annotated[
    timedelta | Literal["forever"] | None,
    BeforeValidator(_keep),
    PlainSerializer(_keep_text),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": texts.LENGTH_PATTERN}, {"const": FOREVER}, {"type": "null"}]}
    ),
]


def _tag_name(text: str) -> None:
    check_places(text, TAG_PLACES)


class TagRule(Part):
    """The tag of a run's snapshot, and how long it stays."""

    name: Annotated[str, AfterValidator(_checked(_tag_name))] = Field(
        description="Its name; {partition} is the run's key, {snapshot} the snapshot's id.",
        examples=["dt-{partition}-{snapshot}"],
    )
    keep: Keep = Field(
        default=None,
        description="How long it stays at least, such as 90d; an expiry takes it away then. forever: until somebody"
        " deletes it.",
    )
    keep_last: Annotated[int, Field(ge=1, le=MOST_KEPT)] | None = Field(
        default=None, description="So many of the tags of the table's runs stay, however old: the newest."
    )

    @property
    def has_end(self) -> bool:
        return isinstance(self.keep, timedelta) or self.keep_last is not None


def _tag_rule(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    _tag_name(value)
    return {"name": value}


def _metastore(text: str) -> str:
    if not re.match(r"thrift://[^/@;\s]+|\$\{", text):
        raise ValueError("an address that begins with thrift://, such as thrift://host:9083")
    return text


class HiveReport(Part):
    """Where a Hive metastore is, and what it is told."""

    metastore: Annotated[WithVariables, AfterValidator(_metastore)] = Field(
        default="${LAKE_VAR_HIVE_METASTORE}",
        description="Its address, such as thrift://host:9083, of several with commas between; ${NAME} is filled in.",
    )
    database: Text | None = Field(default=None, description="Where the table is there. (the table's namespace)")
    idle: SomeDuration | None = Field(
        default=None,
        description="The maintenance runs tell of partitions once no rows have come to them for so long, such as 1h;"
        " a publish then tells of none.",
    )


REPORT_EXPECTED = "hive, or hive: {metastore: thrift://…, database: …, idle: 1h}"


def _report(value: Any) -> Any:
    if value == "hive":
        return {}
    if isinstance(value, Mapping) and list(value) == ["hive"]:
        return value["hive"] or {}
    if value is None or isinstance(value, HiveReport):
        return value
    raise ValueError(REPORT_EXPECTED)


_REPORT_SCHEMA = {
    "anyOf": [
        {"const": "hive"},
        {
            "type": "object",
            "properties": {"hive": HiveReport.model_json_schema()},
            "required": ["hive"],
            "additionalProperties": False,
        },
        {"type": "null"},
    ]
}


class Publish(Part):
    """What follows once a partition's commit is published."""

    tag: Annotated[TagRule | None, BeforeValidator(_tag_rule, json_schema_input_type=str | TagRule | None)] = Field(
        default=None,
        description="A tag for the new snapshot: its name, with {partition} and {snapshot} filled in, or name, keep and"
        " keep_last. What is only a name pins each run's snapshot for ever.",
    )
    mark_done: Annotated[
        tuple[Annotated[MarkDone, BeforeValidator(_mark_done), WithJsonSchema(_MARK_DONE_SCHEMA)], ...],
        Field(strict=False),
    ] = Field(
        default=(),
        description="How downstream learns that the partition is complete: success_file (a _SUCCESS file in its"
        " folder), done_partition (an entry in the catalog), http_report.",
    )
    report: Annotated[HiveReport | None, BeforeValidator(_report), WithJsonSchema(_REPORT_SCHEMA)] = Field(
        default=None,
        description="What other systems learn of the table: hive tells a Hive metastore of it, of its partitions and of"
        " what they hold. The publish stands whether it hears of it or not.",
    )


class Review(Part):
    """What becomes of a commit that its gate rejected."""

    timeout: SomeDuration = Field(
        default=timedelta(hours=24),
        description="How long a person may take to publish or discard it. Then it stays in quarantine.",
    )


class Compact(Part):
    """How the table's files are put together."""

    full: bool = Field(
        default=False, description="Every time into as few files as there can be, rather than where it is due."
    )


class Expire(Part):
    """Which old snapshots are forgotten. Tags, readers and staged commits keep theirs."""

    keep_last: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="So many snapshots stay, however old."
    )
    older_than: Duration | None = Field(default=None, description="Only snapshots older than this go.")


class Maintenance(Part):
    """What the maintenance runs do with the table."""

    compact: Compact | None = Field(default=Compact(), description="null: files stay as they were written.")
    expire: Expire | None = Field(
        default=Expire(keep_last=30, older_than=timedelta(days=7)), description="null: every snapshot stays."
    )


def _remote(text: str) -> str:
    if not re.match(r"sc://[^/;\s]+|\$\{", text):
        raise ValueError("an address that begins with sc://, such as sc://host:15002")
    if ";token=" in text.casefold():
        raise ValueError("an address without a token: the environment has it, as SPARK_CONNECT_AUTHENTICATE_TOKEN")
    return text


class Spark(Part):
    """Where the work runs."""

    master: WithVariables | None = Field(
        default=None, description="Spark's master, such as local[2], yarn or spark://host:7077; ${NAME} is filled in."
    )
    remote: Annotated[WithVariables, AfterValidator(_remote)] | None = Field(
        default=None,
        description="A Spark Connect server that stays, such as sc://host:15002; ${NAME} is filled in. The task is a"
        " client of it, and starts no JVM.",
    )
    connection: Text | None = Field(
        default=None, description="The id of an Airflow connection that says the master or the server."
    )
    conf: Annotated[Options, AfterValidator(_without_environment)] = Field(
        default={},
        description="Spark's own settings, such as spark.executor.memory: 4g; with remote just those of a session,"
        " spark.sql.….",
    )
    timeout: SomeDuration = Field(default=timedelta(hours=2), description="How long one Spark application may take.")


class Local(Part):
    """What the work may take in this process, where it runs without Spark."""

    most_source_bytes: Annotated[int, Field(ge=1)] = Field(
        default=128 * MIB,
        description="With engine: auto, so many bytes of files are read at most, of the source and of the tables that"
        " the transform reads; what is larger is for Spark.",
    )
    memory_bytes: Annotated[int, Field(ge=64 * MIB)] = Field(
        default=1024 * MIB,
        description="The memory that a transform may take; what does not fit is laid down in temporary files.",
    )


class Retries(Part):
    """What follows when a task fails for want of a service, or is killed."""

    count: Annotated[int, Field(ge=0, le=100)] = Field(default=2, description="How often it is tried again.")
    delay: Duration = Field(default=timedelta(seconds=30), description="How long to wait before that.")
