"""Pure. Values as Spark columns: exactly themselves, whatever the zones of the process, its JVM and the session."""

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as sf

from lakelib.model.predicate import Raw
from lakelib.rows.values import python_value


def constant(type_text: str, raw: Raw | None) -> SparkColumn:
    """The raw value (see `model.sortable`), NULL for None, as a Spark column of that type, which is not nested.

    Python's dates and times are never handed over: on their way they pass through time zones and old calendars.
    """
    if raw is None:
        return sf.lit(None).cast(type_text)
    match type_text:
        case "timestamp":
            return sf.timestamp_micros(sf.lit(raw))
        case "timestamp_ntz":
            return sf.timestamp_add("MICROSECOND", sf.lit(raw), sf.lit("1970-01-01 00:00:00").cast("timestamp_ntz"))
        case "date":
            return sf.date_from_unix_date(sf.lit(raw))
        case _:
            return sf.lit(python_value(type_text, raw)).cast(type_text)
