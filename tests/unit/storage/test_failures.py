import errno

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from lakelib.errors import DeniedError, InvalidInputError, LakeError, MissingFileError, NotFoundError, RetryableError
from lakelib.storage.failures import translate, translated

URI = "s3://bucket/file"


def aws(code: str) -> OSError:
    return OSError(f"When reading information for key 'file': AWS Error {code} during HeadObject operation: text")


def service(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "text"}}, "ListObjectsV2")


@pytest.mark.parametrize(
    ("error", "kind", "expected"),
    [
        (FileNotFoundError(errno.ENOENT, "gone"), "missing_file", MissingFileError),
        (aws("NO_SUCH_KEY"), "missing_file", MissingFileError),
        (service("NoSuchKey"), "missing_file", MissingFileError),
        (aws("NO_SUCH_BUCKET"), "missing_bucket", InvalidInputError),
        (service("NoSuchBucket"), "missing_bucket", InvalidInputError),
        (aws("ACCESS_DENIED"), "permission_denied", DeniedError),
        (aws("UNKNOWN (HTTP status 403)"), "permission_denied", DeniedError),
        (service("SignatureDoesNotMatch"), "permission_denied", DeniedError),
        (service("ExpiredToken"), "permission_denied", DeniedError),
        (NoCredentialsError(), "permission_denied", DeniedError),
        (PermissionError(errno.EACCES, "denied"), "permission_denied", DeniedError),
        (OSError(errno.EROFS, "read-only"), "permission_denied", DeniedError),
        (IsADirectoryError(errno.EISDIR, "folder"), "invalid_location", InvalidInputError),
        (OSError(errno.ENOSPC, "full"), "storage_full", RetryableError),
        (OSError(errno.EIO, "broken"), "storage_unavailable", RetryableError),
        (aws("NETWORK_CONNECTION"), "storage_unavailable", RetryableError),
        (aws("SLOW_DOWN"), "storage_unavailable", RetryableError),
        (aws("UNKNOWN (HTTP status 503)"), "storage_unavailable", RetryableError),
        (service("InternalError"), "storage_unavailable", RetryableError),
        (service("500"), "storage_unavailable", RetryableError),
        (EndpointConnectionError(endpoint_url="http://x"), "storage_unavailable", RetryableError),
    ],
)
def test_errors_say_what_a_caller_can_do(error: Exception, kind: str, expected: type[LakeError]) -> None:
    found = translate(error, URI)
    assert (type(found), found.kind) == (expected, kind)
    assert URI.rpartition("/")[0] in str(found)


@pytest.mark.parametrize("error", [aws("UNKNOWN (HTTP status 411)"), service("MissingContentLength")])
def test_a_store_that_wants_no_checksums_is_told_how_to_go_without(error: Exception) -> None:
    found = translate(error, URI)
    assert (type(found), found.kind) == (InvalidInputError, "missing_content_length")
    assert "AWS_REQUEST_CHECKSUM_CALCULATION=when_required" in found.remedy
    assert "AWS_RESPONSE_CHECKSUM_VALIDATION=when_required" in found.remedy


def test_errors_of_lakelib_pass_through() -> None:
    inner = NotFoundError("inner")
    with pytest.raises(NotFoundError) as raised, translated(URI):
        raise inner
    assert raised.value is inner


def test_slips_of_programs_are_not_hidden() -> None:
    with pytest.raises(KeyError), translated(URI):
        raise KeyError("slip")
