"""All ingest DAGs, and what is wrong with the specs that make none."""

from collections.abc import Collection
from pathlib import Path

from airflow.sdk import DAG

from lake_dags.ingest_dag import make_ingest_dag
from lake_dags.places import tables_folder
from lakelib.dataclass import dataclass
from lakelib.errors import LakeError
from lakelib.specs.folder import dag_id_of
from lakelib.specs.table_spec import SpecFolder, TableSpec, find_specs, load_spec, scan_specs

MOST_CHARACTERS = 250
"""In the id of a DAG."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    dags: dict[str, DAG]
    errors: tuple[str, ...]
    """What is wrong, by spec: file, line, field, what is expected."""


class BrokenTableSpecsError(Exception):
    """Table specs that have no DAG until somebody corrects them. The DAGs of the others work."""


def make_dags(doc: str, asked_for: str | None = None) -> Catalogue:
    """All DAGs, or the one that is asked for. A spec that is wrong costs its own DAG only."""
    found = (asked_for and read_for(asked_for)) or scan_specs(tables_folder())
    specs = {spec.table: spec for spec in found.specs}
    dags: dict[str, DAG] = {}
    errors = [error.message for error in found.errors.values()]
    for spec in found.specs:
        dag_id = dag_id_of(spec.table)
        if len(dag_id) > MOST_CHARACTERS:
            errors.append(
                f"{spec.path}, field table: found {spec.table!r}, expected a name of which Airflow can make a DAG id:"
                f" at most {MOST_CHARACTERS - len(dag_id_of('.')) + 1} characters"
            )
        elif asked_for in (None, dag_id):
            dags[dag_id] = make_ingest_dag(spec, specs, doc)
    return Catalogue(dags=dags, errors=tuple(errors))


def read_for(dag_id: str) -> SpecFolder | None:
    """The spec of a DAG, and those of the tables that it comes after: a task has no use for the hundreds of others,
    each of which costs milliseconds. None where only the whole folder tells which is meant, or what is wrong."""
    try:
        own = [spec for spec in _specs_naming(_tables_of(dag_id)) if dag_id_of(spec.table) == dag_id]
        if len(own) != 1:
            return None
        after = own[0].schedule.after if own[0].schedule else None
        others = _specs_naming(after) if after else []
    except (LakeError, OSError, UnicodeDecodeError):
        return None
    return SpecFolder(specs=(*own, *(spec for spec in others if spec.table in (after or ()))), errors={})


def _tables_of(dag_id: str) -> list[str]:
    """Those that may have the DAG: names may have underscores of their own."""
    name = dag_id.removeprefix(dag_id_of(""))
    places = [place for place in range(len(name)) if name.startswith("__", place)]
    return [f"{name[:place]}.{name[place + 2 :]}" for place in places]


def _specs_naming(tables: Collection[str]) -> list[TableSpec]:
    """Those in whose text one of the tables is named."""
    texts = {file: file.read_text(encoding="utf-8") for file in find_specs(tables_folder())}
    return [load_spec(file) for file, text in texts.items() if any(table in text for table in tables)]


def all_specs() -> tuple[TableSpec, ...]:
    """The specs that are right, by file name."""
    return scan_specs(tables_folder()).specs


def spec_of(table: str) -> TableSpec:
    """Raises KeyError, naming the folder, for a table without a spec."""
    for spec in all_specs():
        if spec.table == table:
            return spec
    folder: Path = tables_folder()
    raise KeyError(f"There is no spec of the table {table!r} in {folder}.")
