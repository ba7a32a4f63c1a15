"""Pure. Where things are: pages of the lake's, and pages of Airflow's."""

from urllib.parse import quote

from lakelib.dataclass import dataclass

_AIRFLOW = "airflow"


@dataclass(frozen=True, slots=True)
class Links:
    """`root` is where the lake's pages are, `airflow` where Airflow's are; both without a slash at their end."""

    root: str
    airflow: str

    def table(self, table: str, part: str = "") -> str:
        return f"{self.root}/tables/{_quoted(table)}{part}"

    def partition(self, table: str, key: str) -> str:
        return self.table(table, f"/partitions/{_quoted(key)}")

    def checks(self, table: str) -> str:
        return self.table(table, "/checks")

    def commit(self, commit: object, part: str = "") -> str:
        return f"{self.root}/commits/{commit}{part}"

    def run(self, application: str | None) -> str | None:
        """The DAG run that has staged a commit, by the name of its work: airflow/<dag>/<run>."""
        parts = (application or "").split("/")
        if len(parts) < 3 or parts[0] != _AIRFLOW:
            return None
        return f"{self.airflow}/dags/{_quoted(parts[1])}/runs/{_quoted(parts[2])}"

    def dag(self, dag_id: str) -> str:
        return f"{self.airflow}/dags/{_quoted(dag_id)}"


def run_name(application: str | None) -> str:
    """What to call the work of a commit."""
    parts = (application or "").split("/")
    return "/".join(parts[2:]) if len(parts) >= 3 and parts[0] == _AIRFLOW else application or ""


def _quoted(text: str) -> str:
    return quote(text, safe="")
