"""An import from its arguments to its exit code."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import lakelib
from lakelib.dataclass import dataclass
from lakelib.model.imports import ImportResult
from lakelib.model.upkeep import readable_bytes
from lakelib.ops.create import split_name
from lakelib.pipeline.arguments import ImportArguments
from lakelib.pipeline.sessions import session_if_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import has brought, or would bring."""

    result: ImportResult
    exit_code: int = 0

    def facts(self) -> dict[str, Any]:
        return asdict(self.result)

    def lines(self) -> Iterator[str]:
        result = self.result
        version = "" if result.version is None else f", version {result.version:,}"
        yield f"source      {result.source} ({result.kind}{version})"
        yield f"files       {result.files:,}, {readable_bytes(result.size_bytes)}"
        before = f", {result.batches_before:,} of them before" if result.batches_before else ""
        yield f"batches     {result.batches:,}{before}"
        if result.dry_run:
            yield "dry run     nothing was copied; without --dry-run it is"
            return
        yield f"rows        {result.rows or 0:,}"
        if result.snapshot is not None:
            yield f"snapshot    {result.snapshot:,}"


def carry_over(job: ImportArguments, given_session: "SparkSession | None" = None, tell: Tell | None = None) -> Imported:
    """Copies the rows; the table's namespace is made if there is none."""
    around = job.surroundings
    with lakelib.connect(warehouse=around.warehouse, catalog=around.catalog) as lake:
        if not job.how["dry_run"]:
            lake.create_namespace(split_name(job.table)[0])
        bring = lake.import_delta if job.kind == "delta" else lake.import_parquet
        with session_if_named(f"import {job.table}", around, given_session) as session:
            return Imported(result=bring(job.source, job.table, session=session, tell=tell, **job.how))
