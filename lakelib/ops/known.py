"""Part of small writes: they go by what this process remembers of the table, and save a question.

The catalog says when the commit is staged if that is so no more; then the work is done again by what is so now.
"""

import time

from lakelib.model.table import TableInfo

_SECONDS = 60.0
"""The work counts as begun when the table was looked at: a vacuum since then costs it a second try."""
_MOST_TABLES = 1000


class KnownTables:
    """Safe to use from many threads, and in a forked child."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[float, TableInfo]] = {}

    def remember(self, table: TableInfo) -> None:
        if len(self._tables) >= _MOST_TABLES:
            self._tables.clear()
        self._tables[table.id] = (time.monotonic(), table)

    def recall(self, table_id: int) -> TableInfo | None:
        """The table as it was at most a minute ago, unless what is written to it has to pass a gate."""
        since, table = self._tables.get(table_id, (0.0, None))
        if table is None or table.options.required_gate or time.monotonic() - since > _SECONDS:
            return None
        return table
