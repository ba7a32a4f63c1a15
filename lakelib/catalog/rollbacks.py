"""Rollbacks: which files come back and which go. The catalog works it out; the same SQL makes the commit."""

from lakelib.catalog.connect import Catalog
from lakelib.model.rollback import MovedFile


def find_moved(catalog: Catalog, table_id: int, target: int) -> list[MovedFile]:
    """What it takes to get from the files that are live to those of a snapshot."""
    parameters = {"table_id": table_id, "target": target}
    return [MovedFile(**row) for row in catalog.all("find_moved", parameters)]
