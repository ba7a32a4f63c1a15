"""What a reader of Spark's is told, noted on its way: batches and streams are told alike."""

from typing import Any

from lakelib.spark.options import is_lake, told


def noting_reader(spark_type: type) -> Any:
    """The reader's class, taking note of what it is told."""

    class NotingReader(spark_type):  # type: ignore[misc]
        def __init__(self, plain: Any, session: Any) -> None:
            self.__dict__.update(plain.__dict__)
            self._session = session
            self._is_lake = False
            self._has_schema = False
            self._told: dict[str, str] = {}

        def format(self, source: str) -> Any:
            self._is_lake = is_lake(source)
            return super().format(source)

        def schema(self, schema: Any) -> Any:
            self._has_schema = True
            return super().schema(schema)

        def option(self, key: str, value: Any) -> Any:
            self._told |= told({key: value})
            return super().option(key, value)

        def options(self, **options: Any) -> Any:
            self._told |= told(options)
            return super().options(**options)

        def _note(self, format: str | None, schema: Any, options: dict[str, Any]) -> None:
            """What `load` is told besides."""
            if format is not None:
                self.format(format)
            if schema is not None:
                self.schema(schema)
            self.options(**options)

    return NotingReader
