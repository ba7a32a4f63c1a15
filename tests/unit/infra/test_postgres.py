"""The embedded server of an instance, seen from outside."""

from pathlib import Path

import pytest

from infra.airflow.postgres import has_data, is_ready


@pytest.mark.parametrize("lines", [0, 1, 3, 5])
def test_a_server_whose_lock_file_is_being_written_is_not_ready(tmp_path: Path, lines: int) -> None:
    written = ["1", str(tmp_path), "1", "5432", str(tmp_path)][:lines]
    (tmp_path / "postmaster.pid").write_text("".join(f"{line}\n" for line in written))
    assert not is_ready(tmp_path)


def test_a_folder_has_data_once_it_names_its_version(tmp_path: Path) -> None:
    assert not has_data(tmp_path)
    (tmp_path / "PG_VERSION").write_text("18\n")
    assert has_data(tmp_path)
