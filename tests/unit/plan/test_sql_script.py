"""Where statements end in a text, and that places stay what they are."""

import pytest

from lakelib.plan.sql_script import split_statements


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1", ["SELECT 1"]),
        (" ;; SELECT 1; ; -- SELECT 2;", ["SELECT 1"]),
        ("SELECT ';'; SELECT `;`, \";\"", ["SELECT ';'", 'SELECT `;`, ";"']),
        ("SELECT 'it''s;'; CALL tag('a;b')", ["SELECT 'it''s;'", "CALL tag('a;b')"]),
        ("/* ; */ SELECT 1 -- ;\n; SELECT 2", ["/* ; */ SELECT 1 -- ;", "SELECT 2"]),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        (r"""SELECT 'it\'s;'; SELECT "\";" """, [r"SELECT 'it\'s;'", r'SELECT "\";"']),
        (r"""SELECT r'\'; SELECT R"\" """, [r"SELECT r'\'", r'SELECT R"\"']),
        ("/* /* ; */ ; -- */ SELECT 1; */ SELECT 2", ["/* /* ; */ ; -- */ SELECT 1", "*/ SELECT 2"]),
        ("/* /* a */ ; DELETE; -- */\nSELECT 1", ["/* /* a */ ; DELETE; -- */\nSELECT 1"]),
        ("-- nothing", []),
        ("", []),
    ],
)
def test_statements_end_at_semicolons(text: str, found: list[str]) -> None:
    split = split_statements(text)

    assert [each.strip() for each in split] == found
    assert all(text.startswith(each.lstrip(), len(each) - len(each.lstrip())) for each in split)
