"""A commit is named by its id, or by how that begins."""

from uuid import UUID

import pytest

from lakelib.plan.meant import ids_beginning, parse_commit_id

WHOLE = UUID("0199f3c2-1b7a-4d1e-8c55-3f6a9e0d2b14")


@pytest.mark.parametrize("said", [WHOLE, str(WHOLE), WHOLE.hex, str(WHOLE).upper()])
def test_a_whole_id_is_itself(said: object) -> None:
    assert parse_commit_id(said) == WHOLE


@pytest.mark.parametrize("said", ["0199", "0199f3c2-", "0199F3C2-1b", WHOLE.hex[:31]])
def test_its_first_digits_are_kept_without_dashes(said: str) -> None:
    digits = parse_commit_id(said)
    assert digits == said.replace("-", "").lower()
    lowest, highest = ids_beginning(str(digits))
    assert lowest <= WHOLE <= highest
    assert lowest.hex.startswith(str(digits))
    assert highest.hex.startswith(str(digits))


@pytest.mark.parametrize("said", ["019", "", "----", "nope", "shop.orders", f"{WHOLE}0", "٠١٢٣", 7, None])
def test_what_is_none_is_none(said: object) -> None:
    assert parse_commit_id(said) is None
