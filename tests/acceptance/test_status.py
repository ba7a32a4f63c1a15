"""What somebody should look at, in Python: the commits that wait, and how tables are doing."""

from datetime import date
from pathlib import Path

import pytest

from lakelib import InvalidInputError, Lake, NotFoundError, Table
from tests.acceptance.support import NewTable, raised

DAY = date(2026, 11, 12)
ABOUT = {"partition": str(DAY), "partition_by": "day dt"}


@pytest.fixture
def table(new_table: NewTable) -> Table:
    return new_table("id BIGINT, dt DATE", primary_key=["id"], partition_by=["dt"])


def test_commits_are_listed_by_what_came_of_them(lake: Lake, table: Table) -> None:
    table.upsert([{"id": 1, "dt": DAY}])
    staged = table.stage_upsert([{"id": 2, "dt": DAY}], idempotency_key=("loader", 7))
    refused = table.stage_upsert([{"id": 3, "dt": DAY}])
    refused.reject("not today")

    assert [each.id for each in table.commits()] == [refused.id, staged.id]
    assert [(each.id, each.application, each.version) for each in table.commits("staged")] == [(staged.id, "loader", 7)]
    assert [each.snapshot for each in table.commits(["published", "rejected"])] == [None, 1]
    assert [each.id for each in table.commits(limit=1)] == [refused.id]
    assert {staged.id, refused.id} <= {each.id for each in lake.commits()}
    assert repr(table.commits("published")[0]).endswith(f": published upsert of {table.name}, snapshot 1>")


def test_what_is_no_state_and_no_number_is_refused(table: Table) -> None:
    with raised(InvalidInputError, "invalid_state") as told:
        table.commits("publishd")
    assert "Do you mean published?" in told.value.remedy
    for limit in (-1, True, "7"):
        with raised(InvalidInputError, "invalid_limit"):
            table.commits(limit=limit)  # type: ignore[arg-type]


def test_the_status_says_what_waits(lake: Lake, table: Table) -> None:
    table.stage_upsert([{"id": 1, "dt": DAY}], properties=ABOUT).reject("not today")

    (found,) = (each for each in lake.status().tables if each.table == table.name)
    assert (found.standing, len(found.waiting)) == ("1 waiting", 1)
    assert f"\n  {table.name}: 1 waiting" in repr(lake.status())
    detail = table.status()
    assert [(each.partition, each.standing.value) for each in detail.partitions] == [(str(DAY), "waiting")]
    assert repr(detail).startswith(f"<TableDetail of {table.name}: 1 waiting\n  {DAY}: waiting, ")
    assert "<td>waiting</td>" in detail._repr_html_()
    keyless = table.stage_upsert([{"id": 2, "dt": DAY}])
    assert f"\n  commit {keyless.id}: staged, nobody has decided\n" in repr(table.status())


def test_specs_say_what_is_due_and_one_that_is_wrong_is_an_error(lake: Lake, table: Table, tmp_path: Path) -> None:
    spec = f"""
table: {table.name}
columns: id BIGINT, dt DATE
primary_key: [id]
partition_by: [dt]
partition: {{column: dt, every: day}}
source: {{path: "/in/{{partition}}/*.parquet", arrival: {{timeout: 1s}}}}
schedule: {{cron: "0 0 * * *", start: 2020-01-01}}
spark: {{timeout: 1s}}
"""
    (tmp_path / "due.yaml").write_text(spec)
    assert table.status(tmp_path).status.troubles["missing"] == 1
    assert next(each for each in lake.status(tmp_path).tables if each.table == table.name).troubles["missing"] == 1
    (tmp_path / "wrong.yaml").write_text("table: shop.wrong\n")
    with pytest.raises(InvalidInputError, match=r"wrong\.yaml"):
        lake.status(tmp_path)
    with raised(NotFoundError, "folder_not_found"):
        lake.status(tmp_path / "none")
