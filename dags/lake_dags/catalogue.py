"""All ingest DAGs, and what is wrong with the specs that make none."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airflow.sdk import DAG

from lake_dags.ingest_dag import make_ingest_dag
from lake_dags.places import tables_folder
from lakelib.specs.folder_checks import dag_id_of
from lakelib.specs.table_spec import TableSpec, scan_specs

MOST_CHARACTERS = 250
"""In the id of a DAG."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    dags: dict[str, DAG]
    errors: tuple[str, ...]
    """What is wrong, by spec: file, line, field, what is expected."""


class BrokenTableSpecsError(Exception):
    """Table specs that have no DAG until somebody corrects them. The DAGs of the others work."""


def make_dags(doc: str, wanted: Callable[[str], bool] = lambda dag_id: True) -> Catalogue:
    """The DAGs whose ids are wanted. A spec that is wrong costs its own DAG only."""
    found = scan_specs(tables_folder())
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
        elif wanted(dag_id):
            dags[dag_id] = make_ingest_dag(spec, specs, doc)
    return Catalogue(dags=dags, errors=tuple(errors))


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
