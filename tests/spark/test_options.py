"""Pure. What the text of options of the format "lake" means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelib import InvalidInputError
from lakelib.spark.options import check_known, parse_read, split_names


@pytest.mark.parametrize(
    ("text", "names"),
    [("a", ("a",)), (" a , b ", ("a", "b")), ("a b,c", ("a b", "c")), ("`a,b`, `c``d`,` `", ("a,b", "c`d", " "))],
)
def test_names_are_separated_by_commas(text: str, names: tuple[str, ...]) -> None:
    assert split_names("columns", text) == names


@given(st.lists(st.text("a `,.ü", min_size=1), min_size=1))
def test_every_name_can_be_given_in_backticks(names: list[str]) -> None:
    text = " , ".join("`" + name.replace("`", "``") + "`" for name in names)
    assert split_names("columns", text) == tuple(names)


@pytest.mark.parametrize("text", ["", " ", "a,", ",a", "a,,b", "`a", "`a`b", "``"])
def test_a_name_that_is_missing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="columns"):
        split_names("columns", text)


def test_an_unknown_option_is_told_with_the_known_ones() -> None:
    check_known(["PATH"], ["path", "At"], "to read a lake")
    with pytest.raises(InvalidInputError, match=r"'pth' to read a lake\. Known: path, At\."):
        check_known(["pth"], ["path", "At"], "to read a lake")


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"view": "merge"}, "Do you mean merged or unmerged?"),
        ({"view": "unmerged", "changes_after": "1"}, "Views: all, latest, net."),
        ({"view": "net", "at": "1"}, "Give changes_after and changes_until, or at."),
    ],
)
def test_a_view_of_something_else_is_refused(options: dict[str, str], remedy: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_read({"path": "shop.orders", **options})
    assert remedy in refused.value.remedy


def test_a_view_alone_says_whether_rows_or_changes_are_read() -> None:
    asked = [parse_read({"path": "shop.orders", "view": view}) for view in ("unmerged", "net")]
    assert [(each.view, each.changes and each.changes.view) for each in asked] == [
        ("unmerged", None),
        ("merged", "net"),
    ]
