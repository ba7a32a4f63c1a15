"""Pure. What people's queries may say to Spark alone: besides all that is known in process, parts of queries and
functions that compute from their arguments, and nothing else. None reads a file, a setting, a clock or chance, or
calls what is no function of SQL."""

from collections.abc import Set

from sqlglot import exp

from lakelib.plan.local_query import STRUCTURE
from lakelib.plan.sql_functions import ASKED

_PARTS = (
    exp.Lateral, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Values, exp.Limit, exp.Offset, exp.Qualify,
    exp.Subquery, exp.Paren, exp.WindowSpec, exp.Lambda, exp.PropertyEQ, exp.Kwarg, exp.Escape, exp.Any, exp.All,
    exp.Interval, exp.IntervalSpan, exp.If, exp.Boolean, exp.HexString, exp.Where, exp.Exists, exp.ILike,
)  # fmt: skip
_NESTED = (
    exp.Array, exp.ArrayAgg, exp.ArrayConcat, exp.ArrayContains, exp.ArrayDistinct, exp.ArrayExcept, exp.ArrayFilter,
    exp.ArrayIntersect, exp.ArrayMax, exp.ArrayMin, exp.ArrayPosition, exp.ArrayRemove, exp.ArraySize, exp.ArraySlice,
    exp.ArraySort, exp.ArrayToString, exp.ArrayUniqueAgg, exp.ArraysZip, exp.Bracket, exp.Explode, exp.Flatten,
    exp.GenerateSeries, exp.Inline, exp.Map, exp.MapKeys, exp.Posexplode, exp.Reduce, exp.Struct, exp.Transform,
    exp.VarMap,
)  # fmt: skip
_OF_ROWS = (
    exp.AnyValue, exp.ApproxDistinct, exp.ApproxQuantile, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg,
    exp.Corr, exp.CovarPop, exp.CovarSamp, exp.First, exp.FirstValue, exp.GroupConcat, exp.Grouping, exp.GroupingId,
    exp.Kurtosis, exp.Last, exp.LastValue, exp.Mode, exp.NthValue, exp.Quantile, exp.RegrSlope, exp.RegrIntercept,
    exp.Skewness,
)  # fmt: skip
_OF_VALUES = (
    exp.Acos, exp.Ascii, exp.Asin, exp.Atan, exp.Atan2, exp.BitwiseAnd, exp.BitwiseCount, exp.BitwiseLeftShift,
    exp.BitwiseNot, exp.BitwiseOr, exp.BitwiseRightShift, exp.BitwiseXor, exp.Cbrt, exp.Chr, exp.Cos, exp.Degrees,
    exp.Format, exp.FromBase64, exp.Hex, exp.Hour, exp.Initcap, exp.IntDiv, exp.JSONExtractScalar, exp.JSONPath,
    exp.JSONPathKey, exp.JSONPathRoot, exp.JSONPathSubscript, exp.Levenshtein, exp.MD5, exp.Minute, exp.Mod,
    exp.MonthsBetween, exp.NextDay, exp.Nullif, exp.Nvl2, exp.Overlay, exp.Radians, exp.RegexpExtract, exp.RegexpLike,
    exp.RegexpReplace, exp.RegexpSplit, exp.SafeAdd, exp.SafeDivide, exp.SafeMultiply, exp.SafeSubtract, exp.SHA2,
    exp.Second, exp.Sin, exp.Soundex, exp.Space, exp.SubstringIndex, exp.Tan, exp.TimeStrToTime, exp.TimeToStr,
    exp.ToBase64, exp.Translate, exp.Unhex,
)  # fmt: skip

ALONE: Set[type[exp.Expr]] = {*ASKED, *STRUCTURE, *_PARTS, *_NESTED, *_OF_ROWS, *_OF_VALUES}
"""By what they are parsed into."""

ALONE_BY_NAME: Set[str] = {
    "array_append", "array_compact", "array_insert", "array_prepend", "array_repeat", "array_union", "arrays_overlap",
    "bit_get", "bround", "btrim", "cardinality", "char_length", "character_length", "conv", "crc32", "date_diff",
    "date_from_unix_date", "forall", "format_number", "grouping_id", "hash", "inline_outer", "isnotnull", "isnull",
    "make_date", "map_concat", "map_entries", "map_filter", "map_from_entries", "map_values", "map_zip_with",
    "named_struct", "octet_length", "percentile_disc", "pmod", "positive", "std", "timestamp_micros",
    "timestamp_millis", "timestamp_seconds", "transform_keys", "transform_values", "try_element_at", "unix_date",
    "unix_micros", "weekday", "width_bucket", "xxhash64", "zip_with",
}  # fmt: skip
"""Of those that have no other name."""
