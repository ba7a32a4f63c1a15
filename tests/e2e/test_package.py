"""What people install: the wheel and the source distribution, built, checked, and tried in an empty environment."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from infra.airflow.instance import PROJECT

_TRIED = """
import sys
import lakelib, pyarrow as pa

with lakelib.connect("lake") as lake:
    lake.create_namespace("shop")
    table = lake.create_table("shop.orders", "id BIGINT, amount DOUBLE", primary_key=["id"])
    table.upsert(pa.table({"id": [1, 2], "amount": [9.5, 20.0]}))
    table.upsert(pa.table({"id": [2], "amount": [21.0]}))
    print(sorted(table.scan(where="amount > 10").to_arrow().to_pylist()[0].items()))
print({"pyspark", "pandas", "airflow", "great_expectations", "duckdb"} & set(sys.modules))
"""
_MOST_SECONDS = 600


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the source distribution by the end of their names, made by the tools that publish them."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    shutil.copytree(PROJECT / "lakelib", source / "lakelib", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(PROJECT / name, source)
    tools = _environment(folder / "tools", Path(sys.executable), "build", "twine")
    _run(tools / "python", "-m", "build", "--outdir", str(folder / "dist"), str(source))
    built = sorted((folder / "dist").iterdir())
    _run(tools / "twine", "check", "--strict", *map(str, built))
    return {"".join(path.suffixes[-2:]) if path.name.endswith(".tar.gz") else path.suffix: path for path in built}


def test_both_hold_all_of_the_library_and_nothing_else(distributions: dict[str, Path]) -> None:
    wanted = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "lakelib").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(distributions[".whl"]) as wheel:
        assert {name for name in wheel.namelist() if ".dist-info/" not in name} == wanted
    with tarfile.open(distributions[".tar.gz"]) as source:
        names = {name.partition("/")[2] for name in source.getnames() if source.getmember(name).isfile()}
    assert wanted <= names
    assert {name.partition("/")[0] for name in names - wanted} <= {
        "CHANGELOG.md", "PKG-INFO", "README.md", "lakelib.egg-info", "pyproject.toml", "setup.cfg",
    }  # fmt: skip


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_wheel_alone_gives_a_lake_in_an_empty_environment(
    version: str, distributions: dict[str, Path], tmp_path: Path
) -> None:
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no python{version} on PATH")
    programs = _environment(tmp_path / "empty", Path(python), str(distributions[".whl"]))
    _run(programs / "python", "-m", "pip", "check")

    told = _run(programs / "python", "-c", _TRIED, folder=tmp_path).splitlines()

    assert told == ["[('amount', 21.0), ('id', 2)]", "set()"]
    shown = _run(programs / "lake", "--warehouse", str(tmp_path / "lake"), "scan", "shop.orders", folder=tmp_path)
    assert "21.0" in shown


def _environment(folder: Path, python: Path, *packages: str) -> Path:
    """The programs of a new environment that has just these."""
    _run(python, "-m", "venv", str(folder))
    _run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return folder / "bin"


def _run(program: Path, *arguments: str, folder: Path | None = None) -> str:
    done = subprocess.run(
        [str(program), *arguments], cwd=folder, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
