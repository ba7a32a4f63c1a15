"""The jobs ingest, publish and compact over Spark Connect: sources of all kinds, transforms, what they depend on."""

# ruff: noqa: F401 - what is imported is run
from tests.jobs.test_compact import (
    table,
    test_partitions_are_chosen_by_their_values,
    test_the_result_says_for_each_table_what_was_done,
)
from tests.jobs.test_ingest import (
    shop,
    test_a_commit_depends_on_the_snapshot_that_its_transform_read,
    test_a_compaction_does_not_concern_a_transform_that_read_the_table,
    test_a_row_of_another_partition_is_refused_before_anything_is_staged,
    test_a_run_that_is_cleared_does_not_append_its_rows_twice,
    test_a_table_made_from_others_may_have_no_rows_unless_its_spec_says_otherwise,
    test_a_table_that_is_read_is_pinned_to_the_snapshot_given,
    test_a_transform_cannot_name_the_environment,
    test_a_transform_sees_source_tables_and_the_partition,
    test_a_transform_that_gives_no_rows_is_told_from_an_empty_source,
    test_an_overwrite_replaces_what_the_spec_says,
    test_of_two_runs_of_the_same_work_at_once_one_is_published,
    test_rows_that_do_not_fit_are_told_with_file_and_column,
    test_rows_that_lack_the_keys_column_get_the_partition,
    test_rows_that_went_concern_a_transform_that_read_them,
    test_the_same_work_again_takes_up_the_staged_commit,
    test_what_a_transform_read_of_its_own_table_is_what_its_commit_depends_on,
)
