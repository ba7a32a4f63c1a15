"""What a gate said over Spark Connect, until it is published."""

# ruff: noqa: F401 - what is imported is run
from tests.jobs.test_publish import (
    other_shop,
    shop,
    test_a_commit_that_does_not_pass_any_more_is_rejected,
    test_a_verdict_that_was_overtaken_is_made_again,
    test_a_verdict_that_was_overtaken_is_made_again_by_a_suite_that_looks_at_less,
    test_commits_of_several_tables_are_published_in_one_instant_or_not_at_all,
)
