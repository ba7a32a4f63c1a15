"""A program that uses a lake that is one folder: `python -m tests.integration.catalog.folder_job LAKE STEP…`.

Its embedded server ends with it. Each step that gives something prints it as a line of JSON.
"""

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psycopg
import pyarrow as pa

import lakelib
from lakelib.catalog.embedded import EmbeddedServer
from tests.integration.catalog.earlier import make_earlier


def main() -> None:
    warehouse, *steps = sys.argv[1:]
    if steps[0] == "make_earlier":
        return make_earlier_catalog(Path(warehouse))
    with lakelib.connect(warehouse) as lake:
        for step in steps:
            print(json.dumps(_try(_STEPS[step], lake)))
    return None


def _try(step: Callable[[lakelib.Lake], object], lake: lakelib.Lake) -> object:
    try:
        return step(lake)
    except lakelib.LakeError as error:
        return error.kind


def make(lake: lakelib.Lake) -> None:
    lake.create_namespace("shop")
    table = lake.create_table("shop.a", "id bigint", primary_key=["id"], if_not_exists=True)
    for number in (1, 2):
        table.upsert(_rows(number))


def write(lake: lakelib.Lake) -> int:
    """Adds the next row, and a table for the number of it."""
    number = len(read(lake)) + 1
    lake.table("shop.a").upsert(_rows(number))
    other = lake.create_table(f"shop.t{number}", "id bigint")
    other.append(_rows(number))
    return other.scan().count()


def read(lake: lakelib.Lake) -> list[int]:
    return sorted(lake.table("shop.a").scan().to_arrow()["id"].to_pylist())


def vacuum(lake: lakelib.Lake) -> int:
    """All that can go goes."""
    lake.table("shop.a").compact(full=True)
    lake.table("shop.a").expire(keep_last=1, grace=timedelta(0))
    return lake.vacuum(grace=timedelta(0)).files


def adopt(lake: lakelib.Lake) -> int:
    return lake.adopt("ann", "a copy to try things with").epoch


def spark_settings(lake: lakelib.Lake) -> list[int]:
    """What another process reads that was given this lake's settings."""
    with lakelib.Lake(lake.settings) as same:
        same.table("shop.a").upsert(_rows(1))
        return read(same)


def locations(lake: lakelib.Lake) -> list[str]:
    return [lake.table(name).location for name in lake.tables()]


def make_earlier_catalog(catalog: Path) -> None:
    with psycopg.connect(EmbeddedServer(catalog).url) as connection:
        make_earlier(connection)


def _rows(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64())})


_STEPS: dict[str, Callable[[lakelib.Lake], object]] = {
    each.__name__: each for each in (make, write, read, vacuum, adopt, spark_settings, locations)
}

if __name__ == "__main__":
    main()
