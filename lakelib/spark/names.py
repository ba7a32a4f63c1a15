"""Makes tables of a lake known by their names to a session's own SQL: as tables of its catalog that are read from the
lake.

Spark's catalog has their columns as they are now, and the name of a source; of what a source is told when such a table
is made, Spark tells it nothing when the table is read. So each has a source of its own. Which tables are the lake's is
noted at their database. Rows are read at the snapshot that is the newest then.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lakelib.errors import InvalidInputError
from lakelib.lake import Lake
from lakelib.spark.options import FORMAT
from lakelib.spark.source import data_source
from lakelib.work.spark.types import spark_schema_of

_SPARKS = re.compile(r"[A-Za-z0-9_]+", re.ASCII)
"""What Spark's catalog takes for a name."""
_PROPERTY = "lakelib.tables"
_NOTE = re.compile(rf"\({re.escape(_PROPERTY)},([A-Za-z0-9_ ]*)\)", re.ASCII)


def register_names(session: Any, lake: Lake, namespaces: Sequence[str]) -> None:
    """Raises InvalidInputError for names that Spark cannot have, or has for something else, before anything changes;
    NotFoundError for a namespace that is not there."""
    if isinstance(namespaces, str):
        raise InvalidInputError(
            f"namespaces is {namespaces!r}.", kind="invalid_namespaces", remedy=f"Give a list: [{namespaces!r}]."
        )
    wanted = {namespace: lake.tables(namespace) for namespace in namespaces}
    for namespace, names in wanted.items():
        for name in (namespace, *names):
            _check_name(name)
        _check_free(session, namespace, names)
    for namespace, names in wanted.items():
        _replace(session, lake, namespace, names)


def _check_name(name: str) -> None:
    if not _SPARKS.fullmatch(name):
        raise InvalidInputError(
            f"Spark's catalog can have nothing called {name!r}.",
            kind="invalid_name",
            remedy="Register other namespaces; lakelib.spark.sql(spark, lake, …) takes all names.",
        )


def _check_free(session: Any, namespace: str, names: Iterable[str]) -> None:
    if not session.catalog.databaseExists(f"`{namespace}`"):
        return
    found = session.sql(f"SHOW TABLES IN `{namespace}`").collect()
    taken = {row["tableName"].casefold() for row in found if not row["isTemporary"]} - _noted(session, namespace)
    for name in names:
        if name.casefold() in taken:
            raise InvalidInputError(
                f"Spark has a {namespace}.{name} already, which is no table of a lake.",
                kind="name_taken",
                remedy="Drop it, or register other namespaces.",
            )
        taken.add(name.casefold())


def _noted(session: Any, namespace: str) -> set[str]:
    """The tables of the database that are a lake's, casefolded."""
    told = " ".join(str(row[1]) for row in session.sql(f"DESCRIBE DATABASE EXTENDED `{namespace}`").collect())
    found = _NOTE.search(told)
    return set(found[1].split()) if found else set()


def _replace(session: Any, lake: Lake, namespace: str, names: Sequence[str]) -> None:
    """The note is never of less than there is."""
    session.sql(f"CREATE DATABASE IF NOT EXISTS `{namespace}`").collect()
    before, wanted = _noted(session, namespace), {name.casefold() for name in names}
    _note(session, namespace, before | wanted)
    for name in sorted(before):
        session.sql(f"DROP TABLE IF EXISTS `{namespace}`.`{name}`").collect()
    for name in names:
        _create(session, lake, namespace, name)
    _note(session, namespace, wanted)


def _note(session: Any, namespace: str, names: Iterable[str]) -> None:
    text = " ".join(sorted(names))
    session.sql(f"ALTER DATABASE `{namespace}` SET DBPROPERTIES ('{_PROPERTY}' = '{text}')").collect()


def _create(session: Any, lake: Lake, namespace: str, name: str) -> None:
    full_name = f"{namespace}.{name}"
    source = f"{FORMAT} {full_name}"
    session.dataSource.register(data_source(lake.settings, source, full_name))
    schema = spark_schema_of(lake.table(full_name).schema)
    columns = ", ".join(f"{_quoted(field.name)} {_ddl(field.dataType)}" for field in schema)
    session.sql(f"CREATE TABLE `{namespace}`.`{name}` ({columns}) USING {_quoted(source)}").collect()


def _ddl(kind: DataType) -> str:
    match kind:
        case StructType():
            return f"STRUCT<{', '.join(f'{_quoted(each.name)}: {_ddl(each.dataType)}' for each in kind)}>"
        case ArrayType():
            return f"ARRAY<{_ddl(kind.elementType)}>"
        case MapType():
            return f"MAP<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return kind.simpleString()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
