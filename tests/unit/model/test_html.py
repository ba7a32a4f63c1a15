"""What a notebook shows."""

from dataclasses import dataclass
from datetime import UTC, datetime

from lakelib.model.html import MOST_ROWS, Listing, html_table


@dataclass
class Thing:
    name: str
    size: int


def test_all_that_is_shown_is_escaped() -> None:
    shown = html_table("<b>", ("<i>",), [("<script>alert(1)</script>",), ({"<k>": "&"},)])
    assert "<script>" not in shown
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in shown
    assert "<p>&lt;b&gt;</p>" in shown
    assert "<th>&lt;i&gt;</th>" in shown
    assert "<td>&lt;k&gt;=&amp;</td>" in shown


def test_no_more_than_a_screen_of_it_is_shown() -> None:
    many = Listing(Thing(name=f"n{number}", size=number) for number in range(1000))
    shown = many._repr_html_()
    assert shown.count("<tr>") == 1 + MOST_ROWS
    assert "… of 1,000" in shown
    assert len(html_table("t", ("a",), [("x" * 10_000,)])) < 1000


def test_what_is_unknown_in_length_is_read_no_further_than_it_is_shown() -> None:
    taken = []

    def rows():  # type: ignore[no-untyped-def]
        for number in range(10_000):
            taken.append(number)
            yield (number,)

    html_table("t", ("a",), rows())
    assert len(taken) == MOST_ROWS + 1


def test_values_are_shown_as_people_read_them() -> None:
    at = datetime(2026, 11, 19, 10, 30, 1, 5, tzinfo=UTC)
    shown = html_table("t", ("a", "b", "c", "d"), [(None, True, 1234567, at)])
    assert "<td></td><td>True</td><td>1,234,567</td><td>2026-11-19 10:30:01+00:00</td>" in shown


def test_a_listing_is_a_list() -> None:
    some = Listing([Thing("a", 1), Thing("b", 2)])
    assert some == [Thing("a", 1), Thing("b", 2)]
    assert repr(some) == repr(list(some))
    assert "2 × Thing" in some._repr_html_()
    assert Listing[Thing]()._repr_html_() == "<div><p>[]</p></div>"
