"""Gates over Spark Connect: their outcomes, and what they see."""

# ruff: noqa: F401 - what is imported is run
from tests.jobs.test_ingest_gate import (
    shop,
    test_a_gate_that_errs_ends_with_7_and_is_asked_again,
    test_a_verdict_is_taken_up_and_one_of_another_suite_is_made_anew,
    test_the_outcome_is_that_of_the_gate_and_the_report_tells_it,
    test_what_an_older_version_of_the_gate_accepted_is_judged_by_the_newer_before_it_is_published,
)
