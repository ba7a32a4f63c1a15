import pytest

from lakelib.errors import InvalidInputError
from lakelib.ops.request import WriteRequest, parse_request


def test_an_unknown_option_is_named_with_those_that_may_be_meant() -> None:
    with pytest.raises(InvalidInputError, match=r"'explicit_casts'.*Do you mean explicit_cast\?") as caught:
        parse_request(explicit_casts=True)
    assert caught.value.kind == "unknown_option"

    with pytest.raises(InvalidInputError, match=r"'typo'\. Known: idempotency_key, properties, merge_schema"):
        parse_request(typo=1)


def test_the_other_keywords_of_a_call_may_be_meant_too() -> None:
    with pytest.raises(InvalidInputError, match="Do you mean partitions"):
        parse_request("partitions", partition={"dt": "2026-11-18"})


def test_a_known_option_is_taken() -> None:
    assert parse_request("partitions", merge_schema=True) == WriteRequest(merge_schema=True)
