"""A process that may write only small files, as on a full disk: `python -m … WAREHOUSE CATALOG`.

Prints, as JSON, the error that a large upsert ends with, and how many rows a small one then leaves in the table.
"""

import json
import resource
import signal
import sys

import numpy as np
import pyarrow as pa

import lakelib

LARGEST_FILE_BYTES = 256 * 1024
PARTITIONS = 3


def main(warehouse: str, catalog_url: str) -> None:
    # The kernel's signal would end the process; without it, writing fails with an error as on a full disk.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE_BYTES, resource.RLIM_INFINITY))
    with lakelib.connect(warehouse, catalog_url) as lake:
        table = lake.table("n.t")
        try:
            table.upsert(_rows(LARGEST_FILE_BYTES))
        except lakelib.LakeError as error:
            refused = {"type": type(error).__name__, "kind": error.kind, "message": str(error)}
        else:
            raise AssertionError("files larger than the limit were written")
        seen = table.scan().count()
        table.upsert(_rows(10))
        print(json.dumps({**refused, "seen": seen, "then": table.scan().count()}))


def _rows(count: int) -> pa.Table:
    """Values that do not compress; the last partition has most of the rows, so the others' files are finished."""
    numbers = np.arange(count)
    noise = np.random.default_rng(1).integers(0, 2**63, count)
    return pa.table({"id": numbers, "p": np.minimum(numbers, PARTITIONS - 1).astype(np.int32), "v": noise})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
