"""Tells Airflow what is wrong with table specs: as an import error, which names each file, line and field.

It has no DAG of its own: an import error keeps all DAGs of its file from running, and those of the other specs are to
run.
"""

from lake_dags.catalogue import BrokenTableSpecsError, make_dags

if errors := make_dags("").errors:
    raise BrokenTableSpecsError("\n\n".join(errors))
