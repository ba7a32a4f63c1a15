"""Named queries are cut where they end, and nowhere else."""

from importlib import resources

import pytest

from lakelib.catalog.queries import changes_nothing, name_of, query, query_text, split_queries

_FILE = """-- The first; it has a semicolon in its comment.
-- name: first
select 1;

-- About what follows; no query's own.

-- Two sentences about the second;
-- and this.
-- name: second
do $$
begin
    perform 1; -- not the end;
    perform ';';
end $$;
-- name: third
select ';' -- said; inside
from t;
"""


def test_what_is_said_above_a_name_belongs_to_the_next_query() -> None:
    assert split_queries(_FILE)["first"] == "select 1"


def test_semicolons_inside_a_query_do_not_end_it() -> None:
    found = split_queries(_FILE)

    assert found["second"] == "do $$\nbegin\n    perform 1; -- not the end;\n    perform ';';\nend $$"
    assert found["third"] == "select ';' -- said; inside\nfrom t"
    assert list(found) == ["first", "second", "third"]


def test_no_query_carries_the_comment_of_another() -> None:
    folder = resources.files("lakelib.catalog") / "sql" / "queries"
    names = [name for file in folder.iterdir() for name in split_queries(file.read_text())]

    assert names
    assert len(names) == len(set(names))
    for name in names:
        assert not query_text(name).splitlines()[-1].startswith("--")
        assert not query_text(name).endswith(";")


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("list_tables", True),
        ("load_files", True),
        ("load_table_by_id", True),
        ("list_ended_tags", True),
        ("load_rights", True),
        ("expire_tags", False),
        ("take_lease", False),
        ("expire_commits", False),
    ],
)
def test_a_query_that_only_reads_is_known(name: str, reads: bool) -> None:
    """A row that is locked counts as changed."""
    assert changes_nothing(query_text(name)) is reads


def test_a_function_with_a_version_in_its_name_may_change_something() -> None:
    assert not changes_nothing("select lake.publish_v1(%(commit_ids)s)")


def test_a_query_is_known_by_its_text() -> None:
    assert name_of(query("list_tables")) == "list_tables"
    assert name_of("select 1") is None
