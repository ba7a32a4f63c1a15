"""What a caller asks of a write, checked before anything is done; and the names that people give to tags and
consumers."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from os import PathLike
from typing import Any, TypedDict

from lakelib.dataclass import dataclass
from lakelib.errors import InvalidInputError, UnknownOptionError
from lakelib.model.flags import checked_flags
from lakelib.model.table import IdempotencyKey, TableInfo
from lakelib.model.text import LONGEST_INDEXED_BYTES, choose_from, is_indexable, is_storable
from lakelib.ops.judge import Judging, open_gate
from lakelib.plan.declare import Declared
from lakelib.rows.unite import TargetColumns
from lakelib.specs.suite import Suite
from lakelib.work.engines import open_source
from lakelib.work.sources import RowSource

DISTRIBUTIONS = ("auto", "none", "hash")
_MAX_VERSION = 2**63 - 1
_MOST_SHOWN = 200
LONGEST_NAME = 200


class WriteOptions(TypedDict, total=False):
    """The keywords that every write takes."""

    idempotency_key: tuple[str, int] | None
    properties: Mapping[str, str] | None
    merge_schema: bool
    explicit_cast: bool
    aux_order: Sequence[str]
    distribution: str
    gate: str | PathLike[str] | Suite | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    idempotency_key: IdempotencyKey | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    merge_schema: bool = False
    explicit_cast: bool = False
    aux_order: tuple[str, ...] = ()
    distribution: str = "auto"
    deletes_in: str | None = None
    """One of the columns that order the rows: it says "delete" of those that are delete marks."""
    judging: Judging | None = None
    """Publish only what this gate passes."""
    session: Any = None
    """The Spark session that has the rows, and judges them; None for in process."""
    only_if_changed: bool = False
    """What makes no difference is no commit either: `ops.commit.NothingChangedError` says so."""
    refuse_empty: bool = False
    """No rows are an error."""
    becomes: tuple[Declared, ...] | None = None
    """The columns that the table has from now on, whose rows are all replaced; None leaves them."""
    made_from: int | None = None
    """The snapshot of the table itself that the rows were made from, 0 for one without snapshots: the commit depends on
    all that was there. None for rows that come from elsewhere."""


def parse_request(
    *also_known: str,
    idempotency_key: Any = None,
    properties: Mapping[str, Any] | None = None,
    merge_schema: bool = False,
    explicit_cast: bool = False,
    aux_order: Sequence[str] = (),
    distribution: str = "auto",
    gate: str | PathLike[str] | Suite | None = None,
    **unknown: Any,
) -> WriteRequest:
    """Raises InvalidInputError for an unknown option, a flag that is no bool, a key that is no (application, version),
    properties that are no text, or a wrong gate. `also_known` are the other keywords of the call, which may be meant by
    a slip of the pen."""
    if unknown:
        raise _unknown_option(next(iter(unknown)), (*also_known, *WriteOptions.__annotations__))
    if distribution not in DISTRIBUTIONS:
        raise InvalidInputError(
            f"distribution is {distribution!r}.",
            kind="invalid_distribution",
            remedy=f"Give one of {', '.join(DISTRIBUTIONS)}.",
        )
    merges, casts = checked_flags(merge_schema=merge_schema, explicit_cast=explicit_cast)
    return WriteRequest(
        idempotency_key=_parse_key(idempotency_key),
        properties=_parse_properties(properties or {}),
        merge_schema=merges,
        explicit_cast=casts,
        aux_order=(aux_order,) if isinstance(aux_order, str) else tuple(aux_order or ()),
        distribution=distribution,
        judging=None if gate is None else Judging(suite=open_gate(gate)),
    )


def target_columns(table: TableInfo, request: WriteRequest) -> TargetColumns:
    """What the table asks of each file whose rows it is to take."""
    roles = (*table.primary_key, *table.partition_by, *table.sequence_by)
    needed = (*roles, *(column for column in table.schema.columns if not column.nullable))
    return TargetColumns(
        columns=table.schema.columns,
        roles=frozenset(column.name.casefold() for column in needed),
        fixed=frozenset(column.name.casefold() for column in (*table.primary_key, *table.partition_by)),
        explicit_cast=request.explicit_cast,
        merge_schema=request.merge_schema,
    )


def parse_write(data: Any, *also_known: str, **options: Any) -> tuple[RowSource, WriteRequest]:
    """The rows, and what is asked of them: a gate judges rows that Spark has in Spark's session. Raises what
    `parse_request` does, and InvalidInputError for what holds no rows."""
    request = parse_request(*also_known, **options)
    source = open_source(data)
    if source.session is None:
        return source, request
    judging = None if request.judging is None else replace(request.judging, session=source.session)
    return source, replace(request, judging=judging, session=source.session)


def _unknown_option(name: str, known: Sequence[str]) -> InvalidInputError:
    return UnknownOptionError(f"Unknown option {name!r}.", remedy=choose_from("Known", name, known))


def _parse_key(given: Any) -> IdempotencyKey | None:
    if given is None:
        return None
    match given:
        case (str(application), int(version)) if application and not isinstance(version, bool):
            if 0 <= version <= _MAX_VERSION and is_indexable(application):
                return IdempotencyKey(application=application, version=version)
    shown = repr(given)
    raise InvalidInputError(
        f"idempotency_key is {shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + '…'}.",
        kind="invalid_idempotency_key",
        remedy='Give an application and the version of its work, a whole number that only rises: ("loader", 17). The'
        f" application is text of at most {LONGEST_INDEXED_BYTES:,} bytes, without NUL characters and lone surrogates.",
    )


def _parse_properties(given: Mapping[str, Any]) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"properties is {given!r}.", kind="invalid_property", remedy='Give names and values: {"source": "s3://…"}.'
        )
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str) or not is_storable(name + value):
            raise InvalidInputError(
                f"The property {name!r} is {value!r}.",
                kind="invalid_property",
                remedy="Give names and values as text, without NUL characters and lone surrogates.",
            )
    return dict(given)


def check_label(name: object, what: str, prefix: str) -> None:
    """Raises InvalidInputError for what cannot name a tag or a consumer; `prefix` stands before such a name where it
    stands for a snapshot."""
    if (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST_NAME
        and name == name.strip()
        and name.isprintable()
        and is_storable(name)
        and not name.startswith(prefix)
    ):
        return
    raise InvalidInputError(
        f"A {what} cannot be named {name!r}."
        if not isinstance(name, str) or len(name) <= LONGEST_NAME
        else f"A {what} cannot be named by {len(name):,} characters.",
        kind=f"invalid_{what}",
        remedy=f"Give 1 to {LONGEST_NAME} printable characters without a space at either end, and without {prefix!r} at"
        " the beginning.",
    )
