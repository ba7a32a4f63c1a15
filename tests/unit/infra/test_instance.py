"""What an instance is made of."""

from pathlib import Path

from infra.airflow.instance import Home


def test_an_instance_is_one_lake_and_an_earlier_one_stays_where_it_is(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.catalog == home.warehouse / ".catalog"

    (tmp_path / "catalog").mkdir()

    assert home.catalog == tmp_path / "catalog"
