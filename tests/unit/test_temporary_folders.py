"""Where tests have their folders."""

import pytest


def test_a_run_of_tests_shares_no_folder_with_another(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Who starts one would shut the way to the other's servers."""
    assert not any(part.startswith("pytest-of-") for part in tmp_path_factory.getbasetemp().parts)
