"""Pure. Translates the errors of pyarrow, boto3 and the operating system into lakelib's, here and nowhere else."""

import errno
import re

import pyarrow as pa
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)

from lakelib.errors import (
    CorruptionError,
    DeniedError,
    InvalidInputError,
    LakeError,
    LostFileError,
    MissingFileError,
    NotFoundError,
    RetryableError,
)
from lakelib.storage.listing import DanglingLinkError

STORE_FAILURES = (OSError, ClientError, BotoCoreError)
"""What the drivers of stores raise."""
WRITE_FAILURES = (*STORE_FAILURES, pa.ArrowException)
"""And what pyarrow does while it writes to one."""

_REFUSED = frozenset(
    (
        "accessdenied",
        "allaccessdisabled",
        "authorizationheadermalformed",
        "expiredtoken",
        "forbidden",
        "invalidaccesskeyid",
        "invalidclienttokenid",
        "invalidtoken",
        "missingauthenticationtoken",
        "signaturedoesnotmatch",
        "unrecognizedclient",
        "403",
        "401",
    )
)
_NO_BUCKET = frozenset(("nosuchbucket", "invalidbucketname"))
_NO_FILE = frozenset(("nosuchkey", "resourcenotfound", "notfound", "404"))
_INVALID_ERRNO = frozenset((errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL))
_REFUSED_ERRNO = frozenset((errno.EACCES, errno.EPERM, errno.EROFS))
_FULL_ERRNO = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))

_WANTS_LENGTH = frozenset(("missingcontentlength", "411"))

_ARROW_S3_CODE = re.compile(r"AWS Error ([A-Za-z_]+)")
_ARROW_HTTP_STATUS = re.compile(r"HTTP status (\d{3})|HTTP response code:? (\d{3})")
_SERVICE_WORDS = ("AWS Error", "curl", "HTTP", "HDFS", "GCS", "google::cloud")


class translated:  # noqa: N801
    """Raises lakelib's errors for what fails inside, naming `uri`.

    A file that is missing is a NotFoundError, or a CorruptionError if the catalog names it. A class, as many tiny files
    are read one by one under it: a generator takes several times as long.
    """

    __slots__ = ("_named_by_catalog", "_uri")

    def __init__(self, uri: str, *, named_by_catalog: bool = False) -> None:
        self._uri = uri
        self._named_by_catalog = named_by_catalog

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, STORE_FAILURES):
            raise translate(error, self._uri, named_by_catalog=self._named_by_catalog) from error


class translated_reading(translated):  # noqa: N801
    """As `translated`, for a file that the catalog names: if its content makes no sense, that is a CorruptionError."""

    __slots__ = ()

    def __init__(self, uri: str) -> None:
        super().__init__(uri, named_by_catalog=True)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and _is_of_arrow(error):
            raise CorruptionError(
                f"The file {self._uri} is not the Parquet file it should be: {_said(error)}.",
                kind="unreadable_file",
                remedy="Restore it from a backup or a bucket version.",
            ) from error
        super().__exit__(kind, error, trace)


def translate_writing(error: Exception, uri: str) -> LakeError:
    """As `translate`; what pyarrow refuses to write is an InvalidInputError."""
    if not _is_of_arrow(error):
        return translate(error, uri)
    return InvalidInputError(
        f"Cannot write {uri}: {_said(error)}.",
        kind="unwritable",
        remedy="Correct the data or the table's options.",
    )


def translate(error: Exception, uri: str, *, named_by_catalog: bool = False) -> LakeError:
    """The lakelib error for a driver's error about a file or folder."""
    if isinstance(error, DanglingLinkError):
        return NotFoundError(
            f"The link {error.filename} leads nowhere.",
            kind="dangling_link",
            remedy="Put its file or folder there, or remove the link.",
        )
    if isinstance(error, FileNotFoundError):
        return missing_file(uri, named_by_catalog=named_by_catalog)
    if isinstance(error, NoCredentialsError | PartialCredentialsError | ProfileNotFound):
        return _refused(uri, _said(error))
    code = _service_code(error)
    if code:
        return _from_service(code, error, uri, named_by_catalog)
    if isinstance(error, OSError):
        return _from_system(error, uri)
    return _unreachable(uri, error)


def missing_file(uri: str, *, named_by_catalog: bool) -> LakeError:
    if named_by_catalog:
        return LostFileError(
            f"The catalog names the file {uri}, and it is not there.",
            remedy="Restore it from a backup or a bucket version; find out who deleted it.",
        )
    return MissingFileError(f"There is no file {uri}.")


def _service_code(error: Exception) -> str:
    """What the service called the error, in lower case without separators; '' if no service spoke."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "")).lower()
    found = _ARROW_S3_CODE.search(str(error))
    code = found[1].replace("_", "").lower() if found else ""
    status = _ARROW_HTTP_STATUS.search(str(error))
    return (status[1] or status[2]) if code in ("", "unknown") and status else code


def _is_of_arrow(error: Exception) -> bool:
    """Whether the encoder or decoder failed, rather than the store: pyarrow raises OSError for both."""
    if isinstance(error, OSError):
        said = str(error)
        return error.errno is None and not any(word in said for word in _SERVICE_WORDS)
    return isinstance(error, pa.ArrowException)


def _said(error: Exception) -> str:
    return str(error).rstrip(". ")


def _from_service(code: str, error: Exception, uri: str, named_by_catalog: bool) -> LakeError:
    if code in _NO_FILE:
        return missing_file(uri, named_by_catalog=named_by_catalog)
    if code in _NO_BUCKET:
        return InvalidInputError(
            f"The bucket of {uri} does not exist.",
            kind="missing_bucket",
            remedy="Create it, or correct the setting warehouse (LAKE_WAREHOUSE) or s3_endpoint (LAKE_S3_ENDPOINT).",
        )
    if code in _REFUSED:
        return _refused(uri, _said(error))
    if code in _WANTS_LENGTH:
        return InvalidInputError(
            f"The store misses a content length in what was sent to {uri}, as with checksums: {_said(error)}.",
            kind="missing_content_length",
            remedy="Set the environment variables AWS_REQUEST_CHECKSUM_CALCULATION=when_required and "
            "AWS_RESPONSE_CHECKSUM_VALIDATION=when_required before the program starts.",
        )
    return _unreachable(uri, error)


def _from_system(error: OSError, uri: str) -> LakeError:
    if error.errno in _REFUSED_ERRNO:
        return DeniedError(
            f"This process may not use {uri}: {error.strerror}.",
            remedy="Give its user the right to, or correct the setting warehouse (LAKE_WAREHOUSE).",
        )
    if error.errno in _FULL_ERRNO:
        return RetryableError(f"There is no room to write {uri}.", kind="storage_full", remedy="Make room and repeat.")
    if error.errno in _INVALID_ERRNO:
        return InvalidInputError(
            f"{error.filename or uri} cannot be used as a file: {error.strerror}.",
            kind="invalid_location",
            remedy="Correct the location, or the setting warehouse (LAKE_WAREHOUSE).",
        )
    return _unreachable(uri, error)


def _refused(uri: str, said: str) -> InvalidInputError:
    return DeniedError(
        f"The store refused the credentials for {uri}: {said}.",
        remedy="Correct s3_access_key and s3_secret_key (LAKE_S3_ACCESS_KEY_ID and LAKE_S3_SECRET_ACCESS_KEY, or the "
        "AWS_ names), or let them reach the bucket.",
    )


def _unreachable(uri: str, error: Exception) -> RetryableError:
    return RetryableError(
        f"The store failed at {uri}: {_said(error)}.", kind="storage_unavailable", remedy="Try again."
    )
