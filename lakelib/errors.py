"""The error tree. Grouped by what a caller does about an error, not by where it arose.

Every error carries a stable `kind` (for programs), what was attempted, and what to do about it (for people).
"""

from collections.abc import Sequence
from typing import Any


class LakeError(Exception):
    """Base of every error that lakelib raises on purpose."""

    default_kind = "lake_error"

    def __init__(self, message: str, *, kind: str | None = None, remedy: str = "") -> None:
        """`message` says what was attempted and what went wrong; `remedy` says what to do."""
        super().__init__(f"{message} {remedy}".rstrip())
        self.message = message
        self.kind = kind or self.default_kind
        self.remedy = remedy


class InvalidInputError(LakeError):
    """The request or the data is wrong. Nothing was changed; correct the input and call again."""

    default_kind = "invalid_input"


class WrongValuesError(InvalidInputError):
    """Values of some rows are not what they have to be."""

    default_kind = "wrong_value"

    def __init__(
        self, message: str, *, kind: str | None = None, remedy: str = "", found: Sequence[Any] = (), count: int = 0
    ) -> None:
        """`found` are the first of so many, for whoever names their rows in another way."""
        super().__init__(message, kind=kind, remedy=remedy)
        self.found = tuple(found)
        self.count = count


class OnlySparkError(InvalidInputError):
    """What is asked for takes Spark: nothing else computes the same, or can do it at all."""

    default_kind = "only_spark"
    line: int | None = None
    """Where in the query's text, counted from 1, if that is known."""
    column: int | None = None


class UnknownOptionError(InvalidInputError):
    """There is no option of that name."""

    default_kind = "unknown_option"


class EmptySourceError(InvalidInputError):
    """There are no rows, where there have to be some."""

    default_kind = "empty_source"


class DeniedError(InvalidInputError):
    """The store does not let this process, or its credentials, do it."""

    default_kind = "permission_denied"


class CatalogRefusedError(InvalidInputError):
    """The catalog does not let its user do it, or connect at all."""

    default_kind = "catalog_refused"


class IdentityDiffersError(InvalidInputError):
    """Catalog and warehouse do not belong together, or one of them is another one than it was taken for."""

    default_kind = "identity_differs"


class NotFoundError(LakeError):
    """A namespace, table, snapshot, tag or commit does not exist."""

    default_kind = "not_found"


class ExpiredError(NotFoundError):
    """A snapshot was there and has expired. Whoever meant the head finds a newer one by looking again."""

    default_kind = "snapshot_expired"


class MissingFileError(NotFoundError):
    """There is no file of that name."""

    default_kind = "missing_file"


class ConflictError(LakeError):
    """Somebody else's commit made this one impossible. Nothing was published; look at the new state and decide."""

    default_kind = "conflict"


class DecidedError(ConflictError):
    """The commit was published, rejected or ended before, by whomever."""

    default_kind = "commit_decided"


class RejectedError(LakeError):
    """The commit was refused by its gate, by a person, or for want of a verdict. It stays inspectable."""

    default_kind = "rejected"


class RetryableError(LakeError):
    """A service could not be reached in time. The same call, repeated with the same idempotency key, is safe."""

    default_kind = "retryable"


class LeaseLostError(RetryableError):
    """Files that were held are held no more: they may be gone."""

    default_kind = "lease_lost"


class OutcomeUnknownError(RetryableError):
    """A service was lost while a change was under way: it took effect, or it did not. Repeated with the same
    idempotency key the call finds out; without a key it may do its work twice."""

    default_kind = "outcome_unknown"


class CorruptionError(LakeError):
    """Stored data or metadata is not what the catalog says it is. Needs a person."""

    default_kind = "corruption"


class LostFileError(CorruptionError):
    """A file that the catalog names is not there."""

    default_kind = "missing_file"


OTHER_EXIT_CODE = 1
USAGE_EXIT_CODE = 2
EXIT_CODES: dict[type[LakeError], int] = {
    InvalidInputError: 3,
    NotFoundError: 4,
    ConflictError: 5,
    RejectedError: 6,
    RetryableError: 7,
    CorruptionError: 8,
}
"""How the command `lake` and the jobs end: the code says who has to act."""
EXIT_CODE_MEANINGS = {
    0: "done",
    OTHER_EXIT_CODE: "anything else",
    USAGE_EXIT_CODE: "wrong arguments",
    3: "wrong input",
    4: "something is not there",
    5: "a conflict with another commit",
    6: "rejected",
    7: "try again",
    8: "stored data is damaged",
}
"""In the words of help and logs; docs/cli.md has more of them."""
_FAMILIES = {*EXIT_CODES, OutcomeUnknownError, LakeError}


def exit_code_of(error: BaseException) -> int:
    return next((code for family, code in EXIT_CODES.items() if isinstance(error, family)), OTHER_EXIT_CODE)


def family_of(error: LakeError) -> str:
    """The name, for programs, of the public class that the error belongs to."""
    return next(each for each in type(error).__mro__ if each in _FAMILIES).__name__
