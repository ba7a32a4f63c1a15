"""Run under a released version: makes the small lake, and tells what that version reads in it."""

import json
import sys
import tempfile
from pathlib import Path

import lakelib
from tests.releases.small_lake import make, told


def main(warehouse: str, catalog: str, path: str) -> None:
    with tempfile.TemporaryDirectory() as folder, lakelib.connect(warehouse=warehouse, catalog=catalog) as lake:
        commits = make(lake, Path(folder))
        found = {"commits": commits, "read": told(lake, commits)}
    Path(path).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
