"""Use case: which engine does the work of a spec, Spark or the process of the job itself, and why."""

from collections.abc import Mapping, Sequence

from lakelib.catalog import tables
from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, OnlySparkError
from lakelib.model.upkeep import readable_bytes
from lakelib.ops.runtime import Runtime
from lakelib.plan.changes import told_columns
from lakelib.plan.declare import declare_schema
from lakelib.plan.local_query import check_query, translate_query
from lakelib.specs.table_fields import SOURCE_VIEW
from lakelib.specs.table_spec import TableSpec
from lakelib.work.source_reader import find_obstacle

_SQL_SETTINGS = "spark.sql."
_EXAMPLE_KEYS = {"day": "2026-11-18", "hour": "2026-11-18T05", "month": "2026-11", "none": "all"}


_DO_WITH_SPARK = "Say engine: spark, or auto, or change what takes Spark; docs/specs.md has what runs without it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    name: str
    """ "spark" or "local"."""
    why: str

    @property
    def is_local(self) -> bool:
        return self.name == "local"


def choose_engine(spec: TableSpec, size_bytes: int, *, makes_rows: bool = True) -> Engine:
    """For work that reads so many bytes of files; rows that were made before are only judged. Raises InvalidInputError
    where the spec wants to do without Spark what only Spark does."""
    if spec.engine == "spark":
        return Engine(name="spark", why="the spec says so")
    try:
        if makes_rows:
            check_without_spark(spec)
        check_size(spec, size_bytes)
    except OnlySparkError as reason:
        return engine_instead(spec, reason)
    if spec.engine == "local":
        return Engine(name="local", why="the spec says so")
    return Engine(
        name="local",
        why=f"{readable_bytes(size_bytes)} to read, and up to {readable_bytes(spec.local.most_source_bytes)}",
    )


def engine_instead(spec: TableSpec, reason: OnlySparkError) -> Engine:
    """Spark, where the spec leaves it open. Raises InvalidInputError for a spec that wants to do without it."""
    if spec.engine == "auto":
        return Engine(name="spark", why=f"it takes Spark for {reason.message}")
    raise InvalidInputError(
        f"{spec.path}: the engine of {spec.table} is local, and it takes Spark for {reason.message}.",
        kind=OnlySparkError.default_kind,
        remedy=f"{reason.remedy} {_DO_WITH_SPARK}".lstrip(),
    ) from reason


def check_size(spec: TableSpec, size_bytes: int) -> None:
    """Raises OnlySparkError for more than the spec has done without Spark."""
    if spec.engine == "auto" and size_bytes > spec.local.most_source_bytes:
        limit = readable_bytes(spec.local.most_source_bytes)
        raise OnlySparkError(f"{readable_bytes(size_bytes)} to read, more than {limit} (local.most_source_bytes)")


def check_engine(runtime: Runtime, spec: TableSpec) -> None:
    """Raises InvalidInputError for a spec that wants to do without Spark what only Spark does, as far as that is known
    before its files are there: the query is translated, too, where all columns that it sees are declared."""
    if spec.engine != "local":
        return
    try:
        check_without_spark(spec)
        views = _known_views(runtime, spec)
        if views is not None and spec.transform_path is not None:
            translate_query(query_of(spec), views, _EXAMPLE_KEYS[spec.partition.every])
    except OnlySparkError as reason:
        engine_instead(spec, reason)


def check_without_spark(spec: TableSpec) -> None:
    """Raises OnlySparkError for what takes Spark whatever the files hold."""
    if spec.source is not None:
        columns = declare_schema(spec.source.columns or spec.columns)
        obstacle = find_obstacle(spec.source.format.lower(), spec.source.options, columns)
        if obstacle:
            raise OnlySparkError(obstacle)
    if spec.transform_path is not None:
        setting = next((name for name in spec.spark.conf if name.casefold().startswith(_SQL_SETTINGS)), None)
        if setting is not None:
            raise OnlySparkError(f"a transform under the setting {setting}")
        check_query(query_of(spec))


def query_of(spec: TableSpec) -> str:
    """The text of the spec's transform."""
    assert spec.transform_path is not None
    return spec.transform_path.read_text(encoding="utf-8").strip().removesuffix(";")


def _known_views(runtime: Runtime, spec: TableSpec) -> Mapping[str, Sequence[tuple[str, str]]] | None:
    """None if files may bring further columns, or a table is not there yet."""
    views = {}
    if spec.source is not None:
        if spec.source.columns is None:
            return None
        views[SOURCE_VIEW] = [(column.name, column.type) for column in declare_schema(spec.source.columns)]
    for view, read in spec.reads.items():
        found = tables.find_table(runtime.catalog, *read.table.split(".", 1))
        if found is None:
            return None
        columns = (*found.schema.columns, *told_columns(spec.changes_seen(view)))
        views[view] = [(column.name, column.type) for column in columns]
    return views
