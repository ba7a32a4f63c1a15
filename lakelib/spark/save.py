"""Makes `frame.write.format("lake")` write to a lake.

Spark lets no Python data source decide how rows are distributed, and none knows the modes `ignore` and `errorifexists`.
So the data frame's own writer notices the format and hands the frame to the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakelib.distribute.frames import open_frame
from lakelib.errors import InvalidInputError, NotFoundError
from lakelib.lake import Lake
from lakelib.ops.request import WriteOptions
from lakelib.table import Table

_FORMAT = "lake"
_MUST_BE_NEW = ("errorifexists", "error", "default")
_MODES = ("append", "overwrite", "ignore", *_MUST_BE_NEW)
_MERGE_SCHEMA = "write.merge-schema"
_EXPLICIT_CAST = "write.merge-schema.explicit-cast"
_OVERWRITE_MODE = "partitionOverwriteMode"
_OPTIONS = (
    "path",
    "table",
    "distribution",
    _MERGE_SCHEMA,
    _EXPLICIT_CAST,
    _OVERWRITE_MODE,
    "primary-key",
    "sequence-by",
    "buckets",
    "idempotency.application",
    "idempotency.version",
)
_LAKES: dict[type, Lake] = {}
"""The lake that data frames of a class (classic, or Spark Connect's) are written to."""


def write_to(session: Any, lake: Lake) -> None:
    """Data frames of the session's kind write the format "lake" to this lake from now on."""
    frame_type = type(session.range(0))
    if frame_type not in _LAKES:
        plain_property = frame_type.write
        writer_type = _watching(type(plain_property.fget(session.range(0))))
        frame_type.write = property(lambda frame: writer_type(plain_property.fget(frame), frame))
    _LAKES[frame_type] = lake


@dataclass(slots=True)
class _Notes:
    """What a writer was told before it was told to save."""

    format: str = ""
    mode: str = "errorifexists"
    partition_by: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        return self.format.casefold() == _FORMAT

    def add(self, options: Mapping[str, Any]) -> None:
        for name, value in options.items():
            self.options[name.casefold()] = str(value).lower() if isinstance(value, bool) else str(value)


def _watching(spark_type: type) -> Any:
    """Spark's writer, which takes note of what it is told, and saves to the lake what is of its format."""

    class LakeDataFrameWriter(spark_type):  # type: ignore[misc]
        def __init__(self, plain: Any, frame: Any) -> None:
            self.__dict__.update(plain.__dict__)
            self._frame = frame
            self._notes = _Notes()

        def format(self, source: str) -> Any:
            self._notes.format = source
            return super().format(source)

        def mode(self, saveMode: str | None) -> Any:  # noqa: N803 - Spark's name
            if saveMode:
                self._notes.mode = saveMode.casefold()
            return super().mode(saveMode)

        def option(self, key: str, value: Any) -> Any:
            self._notes.add({key: value})
            return super().option(key, value)

        def options(self, **options: Any) -> Any:
            self._notes.add(options)
            return super().options(**options)

        def partitionBy(self, *cols: Any) -> Any:  # noqa: N802 - Spark's name
            named = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
            self._notes.partition_by = tuple(named)
            return super().partitionBy(*cols)

        def save(
            self,
            path: str | None = None,
            format: str | None = None,
            mode: str | None = None,
            partitionBy: Any = None,  # noqa: N803 - Spark's name
            **options: Any,
        ) -> None:
            self._note(format, mode, partitionBy, options)
            if self._notes.is_ours:
                _save(self._frame, path, self._notes)
            else:
                super().save(path)

        def saveAsTable(  # noqa: N802 - Spark's name
            self,
            name: str,
            format: str | None = None,
            mode: str | None = None,
            partitionBy: Any = None,  # noqa: N803 - Spark's name
            **options: Any,
        ) -> None:
            self._note(format, mode, partitionBy, options)
            if self._notes.is_ours:
                _save(self._frame, name, self._notes)
            else:
                super().saveAsTable(name)

        def _note(self, format: str | None, mode: str | None, partition_by: Any, options: dict[str, Any]) -> None:
            self.mode(mode).options(**options)
            if partition_by is not None:
                self.partitionBy(partition_by)
            if format is not None:
                self.format(format)

    return LakeDataFrameWriter


def _save(frame: Any, path: str | None, notes: _Notes) -> None:
    _check(notes)
    name = path or notes.options.get("path") or notes.options.get("table")
    if not name:
        raise InvalidInputError(
            "No table is named.", kind="missing_table", remedy='Give its name: save("shop.orders").'
        )
    lake = _LAKES[type(frame)]
    table, is_new = _find_or_create(lake, name, frame, notes)
    if not is_new and notes.mode == "ignore":
        return
    if not is_new and notes.mode in _MUST_BE_NEW:
        raise InvalidInputError(
            f"Table {name} is there already.",
            kind="table_exists",
            remedy='Give mode("append"), mode("overwrite") or mode("ignore").',
        )
    options = _write_options(notes)
    if notes.mode == "overwrite" and not is_new:
        table.overwrite(frame, _overwritten(frame, notes), **options)
    else:
        table.append(frame, **options)


def _find_or_create(lake: Lake, name: str, frame: Any, notes: _Notes) -> tuple[Table, bool]:
    """The table, and whether it was made for these rows."""
    try:
        return lake.table(name), False
    except NotFoundError:
        buckets = notes.options.get("buckets")
        table = lake.create_table(
            name,
            open_frame(frame).schema,
            primary_key=_names(notes.options.get("primary-key")),
            partition_by=notes.partition_by,
            sequence_by=_names(notes.options.get("sequence-by")),
            buckets=int(buckets) if buckets and buckets.isdecimal() else buckets,
        )
        return table, True


def _check(notes: _Notes) -> None:
    if notes.mode not in _MODES:
        raise InvalidInputError(
            f"Unknown mode {notes.mode!r}.", kind="invalid_mode", remedy=f"Give one of {', '.join(_MODES)}."
        )
    known = {name.casefold(): name for name in _OPTIONS}
    unknown = [name for name in notes.options if name not in known]
    if unknown:
        raise InvalidInputError(
            f"Unknown option {unknown[0]!r} to write to a lake.",
            kind="unknown_option",
            remedy=f"Known: {', '.join(_OPTIONS)}.",
        )


def _write_options(notes: _Notes) -> WriteOptions:
    application, version = (notes.options.get(f"idempotency.{part}") for part in ("application", "version"))
    given: WriteOptions = {
        "merge_schema": _is_true(notes, _MERGE_SCHEMA),
        "explicit_cast": _is_true(notes, _EXPLICIT_CAST),
        "distribution": notes.options.get("distribution", "auto"),
    }
    if application is not None or version is not None:
        is_number = version is not None and version.isdecimal()
        given["idempotency_key"] = (application, int(version) if is_number else version)  # type: ignore[arg-type, typeddict-item]
    return given


def _is_true(notes: _Notes, option: str) -> bool:
    text = notes.options.get(option.casefold(), "false").casefold()
    if text not in ("true", "false"):
        raise InvalidInputError(f"Option {option} is {text!r}.", kind="invalid_option", remedy="Give true or false.")
    return text == "true"


def _overwritten(frame: Any, notes: _Notes) -> str:
    setting = "spark.sql.sources.partitionOverwriteMode"
    mode = notes.options.get(_OVERWRITE_MODE.casefold()) or frame.sparkSession.conf.get(setting, "static")
    return "dynamic" if mode.casefold() == "dynamic" else "all"


def _names(text: str | None) -> list[str]:
    return [] if not text else [name.strip() for name in text.split(",")]
