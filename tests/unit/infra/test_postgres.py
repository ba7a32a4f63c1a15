"""The embedded server of an instance, seen from outside."""

import socket
from pathlib import Path

from infra.airflow.postgres import has_data, is_ready


def test_a_server_that_takes_no_sessions_yet_is_not_ready(tmp_path: Path) -> None:
    assert not is_ready(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / ".s.PGSQL.5432"))
        assert not is_ready(tmp_path)


def test_a_folder_has_data_once_it_names_its_version(tmp_path: Path) -> None:
    assert not has_data(tmp_path)
    (tmp_path / "PG_VERSION").write_text("18\n")
    assert has_data(tmp_path)
