"""Measures lakelib against plain Parquet and the peer on data made here, and says which bar is missed.

`python -m tests.bench [--quick] [--only NAME …]`. Everything lives in a temporary folder. Ratios come from the same
run; the exit code is 0 whatever the figures are.
"""

import argparse
import os
from collections.abc import Callable, Iterator

from tests.bench.changing import measure_changing
from tests.bench.cold import measure_cold
from tests.bench.commits import measure_commits
from tests.bench.compaction import measure_compaction, measure_compaction_memory
from tests.bench.consumers import measure_consumers
from tests.bench.cross_partition import measure_cross_partition
from tests.bench.data import KEY_TYPES
from tests.bench.delta import measure_delta
from tests.bench.ducklake import measure_ducklake
from tests.bench.gate import measure_gate
from tests.bench.imports import measure_imports
from tests.bench.lab import Lab, open_lab
from tests.bench.long_lines import measure_long_lines
from tests.bench.many_files import measure_many_files
from tests.bench.merge_engines import measure_merge_engines
from tests.bench.orchestration import measure_airflow, measure_demo
from tests.bench.orders import Orders
from tests.bench.pages import measure_pages
from tests.bench.report import Line, print_header, print_line, print_summary
from tests.bench.reshaping import measure_reshaping
from tests.bench.spark import measure_spark
from tests.bench.sql import measure_sql
from tests.bench.sql_on_spark import measure_sql_on_spark
from tests.bench.stream import measure_stream
from tests.bench.wide import measure_wide
from tests.bench.writers import measure_writers

_ON_ORDERS: dict[str, Callable[[Orders], Iterator[Line]]] = {
    "load": Orders.measure_load,
    "upsert": Orders.measure_upsert,
    "read": Orders.measure_read,
    "lookup": Orders.measure_lookup,
    "changes": Orders.measure_changes,
}
_OTHERS: dict[str, Callable[[Lab], Iterator[Line]]] = {
    "commits": measure_commits,
    "consumers": measure_consumers,
    "writers": measure_writers,
    "import": measure_imports,
    "plan": measure_many_files,
    "cold": measure_cold,
    "wide": measure_wide,
    "stream": measure_stream,
    "ducklake": measure_ducklake,
    "delta": measure_delta,
    "spark": measure_spark,
    "sql": measure_sql,
    "sql-on-spark": measure_sql_on_spark,
    "changing": measure_changing,
    "long-lines": measure_long_lines,
    "gate": measure_gate,
    "airflow": measure_airflow,
    "demo": measure_demo,
    "compaction": measure_compaction,
    "merge-engines": measure_merge_engines,
    "reshaping": measure_reshaping,
    "cross-partition": measure_cross_partition,
    "compaction-memory": measure_compaction_memory,
    "pages": measure_pages,
}


def main() -> None:
    arguments = _parse_arguments()
    names = set(arguments.only or [*_ON_ORDERS, *_OTHERS])
    kinds = arguments.key or list(KEY_TYPES)
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.2f}; s and ms are wall-clock times")
    print_header()
    lines = []
    with open_lab(arguments.quick) as lab:
        for line in _measure(lab, names, kinds):
            print_line(line)
            lines.append(line)
    print_summary(lines)
    if arguments.quick:
        print("The bars are those of the full size: a tenth of the rows does not have a tenth of the fixed costs.")


def _measure(lab: Lab, names: set[str], kinds: list[str]) -> Iterator[Line]:
    for kind in kinds:
        orders = Orders(lab, kind)
        for name in [name for name in _ON_ORDERS if name in names]:
            yield from _ON_ORDERS[name](orders)
    for name in [name for name in _OTHERS if name in names]:
        yield from _OTHERS[name](lab)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows: a smoke test, no judgement")
    parser.add_argument("--only", action="append", choices=[*_ON_ORDERS, *_OTHERS], help="may be given several times")
    parser.add_argument("--key", action="append", choices=list(KEY_TYPES), help="kinds of key; both, if not given")
    return parser.parse_args()


if __name__ == "__main__":
    main()
