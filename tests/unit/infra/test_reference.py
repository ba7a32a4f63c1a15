"""The page of the API is what the code says: whatever is public and changes is seen there."""

from pathlib import Path

from infra.reference import reference_text

_PAGE = Path(__file__).parents[3] / "docs" / "api.md"


def test_the_page_is_current() -> None:
    """`make reference` writes it."""
    assert _PAGE.read_text() == reference_text()


def test_all_public_names_are_on_it() -> None:
    import lakelib

    text = reference_text()
    assert [name for name in lakelib.__all__ if f"{name}" not in text and name != "__version__"] == []
    assert " object at 0x" not in text
    assert "lakelib.ops" not in text
