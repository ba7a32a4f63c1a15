"""Interop. A Hive metastore as a client sees it: every call has an end, and is made again where the connection fails.

The stubs are those that PyIceberg keeps (`hive_metastore`), generated from Hive's own definition; nothing else of it is
used. They are loaded when a metastore is spoken to.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, RetryableError

DEFAULT_TIMEOUT_SECONDS = 10.0
_DEFAULT_PORT = 9083
_TRIES = 3
_PAUSE_SECONDS = 0.5
_AT_ONCE = 500
_ALL = -1
_MOST_SHOWN = 300
_AS_TOLD = {"DO_NOT_UPDATE_STATS": "true"}
"""Else the service counts files, and forgets what it was told of rows."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a metastore is: one that answers of these is taken."""

    hosts: tuple[tuple[str, int], ...]
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    """How long a try may wait for the service at a time."""

    def __str__(self) -> str:
        return ",".join(f"thrift://{host}:{port}" for host, port in self.hosts)


def parse_address(text: str, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> Address:
    """Of `thrift://host:9083`, or several with commas between. Raises InvalidInputError."""
    hosts = []
    for part in text.split(","):
        try:
            found = urlsplit(part.strip())
            host, port = found.hostname, found.port or _DEFAULT_PORT
        except ValueError:
            host = None
        if host is None or found.scheme != "thrift" or found.username is not None or found.path not in ("", "/"):
            raise InvalidInputError(
                f"{part.rpartition('@')[2]!r} is no address of a Hive metastore.",
                kind="invalid_metastore",
                remedy="Give thrift://host:9083; of several, with commas between, one that answers is taken.",
            )
        hosts.append((host, port))
    return Address(hosts=tuple(hosts), timeout_seconds=timeout_seconds)


class Metastore:
    """A connection, opened at the first call. What it takes and gives are the stubs' values."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._transport: Any = None
        self._client: Any = None
        try:
            from hive_metastore import ThriftHiveMetastore, ttypes
        except ImportError as error:
            raise InvalidInputError(
                "Speaking to a Hive metastore takes its stubs, which are not installed.",
                kind="hive_missing",
                remedy='pip install "lakelib[hive]".',
            ) from error
        self.types: Any = ttypes
        self._stubs = ThriftHiveMetastore

    def __enter__(self) -> "Metastore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def find_table(self, database: str, table: str) -> Any:
        """None if there is none."""
        return self._found(lambda client: client.get_table(database, table))

    def create_database(self, database: str, location: str) -> None:
        """There is one of that name afterwards."""
        if self._found(lambda client: client.get_database(database)) is not None:
            return
        made = self.types.Database(name=database, description="", locationUri=location, parameters={})
        with suppress(self.types.AlreadyExistsException):
            self._call(lambda client: client.create_database(made))

    def create_table(self, table: Any) -> None:
        with suppress(self.types.AlreadyExistsException):  # a reply was lost
            self._call(lambda client: client.create_table_with_environment_context(table, self._context()))

    def alter_table(self, table: Any) -> None:
        self._call(
            lambda client: client.alter_table_with_environment_context(
                table.dbName, table.tableName, table, self._context()
            )
        )

    def drop_table(self, database: str, table: str) -> None:
        """Its files stay."""
        self._found(lambda client: client.drop_table(database, table, False))

    def list_partitions(self, database: str, table: str) -> Iterator[Any]:
        """All of a table, some at a time."""
        names = self._call(lambda client: client.get_partition_names(database, table, _ALL))
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            yield from self._call(partial(_partitions_named, database, table, some))

    def find_partition(self, database: str, table: str, values: Sequence[str]) -> Any:
        """None if there is none."""
        return self._found(lambda client: client.get_partition(database, table, list(values)))

    def add_partition(self, partition: Any) -> None:
        with suppress(self.types.AlreadyExistsException):  # a reply was lost, or somebody else has told the same
            self._call(lambda client: client.add_partition_with_environment_context(partition, self._context()))

    def alter_partition(self, partition: Any) -> None:
        self._call(
            lambda client: client.alter_partition_with_environment_context(
                partition.dbName, partition.tableName, partition, self._context()
            )
        )

    def drop_partition(self, database: str, table: str, values: Sequence[str]) -> None:
        """Its files stay."""
        self._found(lambda client: client.drop_partition(database, table, list(values), False))

    def _context(self) -> Any:
        return self.types.EnvironmentContext(properties=dict(_AS_TOLD))

    def _found(self, ask: Callable[[Any], Answer]) -> Answer | None:
        try:
            return self._call(ask)
        except self.types.NoSuchObjectException:
            return None

    def _call(self, ask: Callable[[Any], Answer]) -> Answer:
        """Raises RetryableError where the service cannot be reached, or does not do what it is asked."""
        from thrift.protocol.TProtocol import TProtocolException
        from thrift.Thrift import TApplicationException, TException
        from thrift.transport.TTransport import TTransportException

        failure: Exception | None = None
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE_SECONDS * attempt)
            try:
                return ask(self._opened())
            except (self.types.AlreadyExistsException, self.types.NoSuchObjectException):
                raise
            except (TTransportException, TProtocolException, OSError, EOFError) as error:
                failure = error
                self._close()
            except (TApplicationException, TException) as error:
                self._close()
                raise self._failed(f"It answered: {_shown(error)}") from error
        raise self._failed(f"It does not answer: {_shown(failure)}") from failure

    def _opened(self) -> Any:
        if self._client is not None:
            return self._client
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport, TTransportException

        failure: Exception | None = None
        for host, port in self._address.hosts:
            socket = TSocket(host, port)
            socket.setTimeout(self._address.timeout_seconds * 1000)
            transport = TBufferedTransport(socket)
            try:
                transport.open()
            except (TTransportException, OSError) as error:
                failure = error
                continue
            self._transport, self._client = transport, self._stubs.Client(TBinaryProtocol(transport))
            return self._client
        assert failure is not None
        raise failure

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._transport = self._client = None

    def _failed(self, failure: str) -> RetryableError:
        return RetryableError(
            f"The Hive metastore at {self._address} was not told. {failure}.",
            kind="report_failed",
            remedy="What is published stands. Report again once the service is well: `lake hive` does what is left.",
        )


def _partitions_named(database: str, table: str, names: Sequence[str], client: Any) -> Any:
    return client.get_partitions_by_names(database, table, names)


def _shown(error: Exception | None) -> str:
    text = " ".join(str(getattr(error, "message", None) or error or type(error).__name__).split())
    return (text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…").rstrip(". ")
