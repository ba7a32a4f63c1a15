"""What the catalog lets its user do. The grants decide: to ask before work is begun spares what would be refused."""

from lakelib.catalog.connect import Catalog
from lakelib.catalog.denied import right_missing
from lakelib.model.roles import Right


def load_rights(catalog: Catalog) -> None:
    """Looks which rights the user has, for `require_right` to know."""
    row = catalog.one("load_rights")
    assert row is not None
    catalog.rights = frozenset(Right(name) for name in row["rights"])


def require_right(catalog: Catalog, right: Right) -> None:
    """Raises InvalidInputError for a user who lacks the right. One that was granted since is found."""
    if right in catalog.rights:
        return
    load_rights(catalog)
    if right not in catalog.rights:
        raise right_missing(catalog.url, right)
