"""A prompt for SQL: a statement goes on until a semicolon; names are completed; what was typed is remembered."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lakelib.cli.command import Session
from lakelib.cli.show import Answer, tell
from lakelib.errors import LakeError
from lakelib.plan.sql_script import is_ended

_WORDS = tuple(
    """SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN LEFT RIGHT FULL INNER SEMI ANTI ON USING AS AND OR
    NOT IN IS NULL LIKE ILIKE BETWEEN CASE WHEN THEN ELSE END WITH UNION ALL EXCEPT INTERSECT DISTINCT OVER PARTITION
    QUALIFY EXPLAIN FOR VERSION TIMESTAMP OF count sum avg min max changes INSERT INTO OVERWRITE VALUES BY NAME UPDATE
    SET DELETE MERGE MATCHED CREATE REPLACE TABLE NAMESPACE PRIMARY KEY PARTITIONED TBLPROPERTIES ALTER COLUMN ADD DROP
    RENAME COMMENT TYPE FIRST AFTER TRUNCATE CALL SHOW TABLES NAMESPACES DESCRIBE EXISTS IF""".split()  # noqa: SIM905
)
_ENDS = ("exit", "quit", r"\q")
_NAME = re.compile(r"\b[\w-]+\.[\w-]+\b")
_MOST_REMEMBERED = 10_000
_WORD_ENDS = " \t\n,()=<>+*/;'`"
"""Where a name begins: a dot and a dollar sign are in one."""

CarryOut = Callable[[str], Answer | None]


def converse(session: Session, carry_out: CarryOut) -> None:
    """Until the person leaves. What goes wrong is said, and asked again."""
    lake = session.lake
    with _line_editing(lake) as forget:
        session.note(f"SQL on the lake at {lake.warehouse}. A statement ends with a semicolon; exit or Ctrl-D leaves.")
        while (text := _read_statement()) is not None:
            try:
                answer = carry_out(text)
                forget()
                if answer is not None:
                    tell(session, answer)
            except KeyboardInterrupt:
                session.note("interrupted")
            except Exception as error:
                session.explain_failure(error)


def _read_statement() -> str | None:
    """None at the end."""
    lines: list[str] = []
    while True:
        try:
            line = input("lake> " if not lines else "  ... ")
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:
            print()
            lines = []
            continue
        if not lines and line.strip().rstrip(";").casefold() in _ENDS:
            return None
        if line.strip() or lines:
            lines.append(line)
        text = "\n".join(lines).strip()
        if is_ended(text):
            lines = []
            if text.strip("; \n"):
                return text


@contextmanager
def _line_editing(lake: Any) -> Iterator[Callable[[], None]]:
    """Gives what is to be called once there may be other tables, or columns."""
    try:
        import readline
    except ImportError:
        yield lambda: None
        return
    history = _history_file()
    with suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(_MOST_REMEMBERED)
    completer = Completer(lake)
    readline.set_completer(completer.complete)
    readline.set_completer_delims(_WORD_ENDS)
    readline.parse_and_bind("tab: complete")
    try:
        yield completer.forget
    finally:
        readline.set_completer(None)
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)
            history.chmod(0o600)


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "lake" / "sql_history"


class Completer:
    """Words of SQL, tables, and the columns of those that the line names."""

    def __init__(self, lake: Any) -> None:
        self._lake = lake
        self._tables: list[str] | None = None
        self._columns: dict[str, list[str]] = {}
        self._found: list[str] = []

    def forget(self) -> None:
        """There may be other tables, and other columns, from now on."""
        self._tables = None
        self._columns = {}

    def complete(self, text: str, state: int) -> str | None:
        """As `readline` asks: for the first, the second … way to go on."""
        if state == 0:
            import readline

            self._found = self.find(text, readline.get_line_buffer())
        return self._found[state] if state < len(self._found) else None

    def find(self, text: str, line: str) -> list[str]:
        """How a word that begins so may go on. Nothing where the catalog cannot be asked."""
        with suppress(LakeError):
            alias, dot, begun = text.rpartition(".")
            named = [name for name in _NAME.findall(line) if name in self._known_tables()]
            columns = [column for name in named for column in self._columns_of(name)]
            tables = self._known_tables()
            known = [*columns, *tables, *_WORDS]
            found = [each for each in known if each.casefold().startswith(text.casefold())]
            if dot and not found:
                found = [f"{alias}.{each}" for each in columns if each.casefold().startswith(begun.casefold())]
            return list(dict.fromkeys(found))
        return []

    def _known_tables(self) -> list[str]:
        if self._tables is None:
            self._tables = self._lake.tables()
        return self._tables

    def _columns_of(self, name: str) -> list[str]:
        if name not in self._columns:
            self._columns[name] = list(self._lake.table(name).schema.names)
        return self._columns[name]
