"""## Ingest: a partition of a source becomes a commit of a table

There is one such DAG for each table spec, `dags/tables/*.yaml`; nobody writes them by hand. One run is about one
partition:

1. **wait_for_source** looks for the files, or for their marker; while it waits it is deferred, and the triggerer looks.
   It gives up after `source.arrival.timeout`.
2. **stage_and_judge** is one Spark application: it reads, transforms and stages the rows, and lets the gate judge
   them as their readers would see them. Nobody sees them yet. Its extra link is the gate's report.
3. **review** is skipped, unless the gate rejected the commit: then it waits for a person.
4. **publish** makes the commit visible, in one instant. It fails if the person discarded the commit, and is skipped if
   there are no rows and the spec says `when_empty: skip`. **tag** and **mark_done** follow, then **announce**: asset
   events that wake the tables that come after this one, for each partition that has changed.

A run whose partition was not published has failed. One that was published with warnings, or although its gate rejected
it, is green and has a note: the grid marks the corner of its bar, its page has the text.

### Parameters

- `partition`: which partition a manual run is about. Scheduled runs, backfills and runs that an asset wakes know
  theirs.

### Review

Open *Required Actions*. `publish` needs a reason, which is kept with the commit beside your name; `discard` leaves
the commit rejected, and **publish** fails and says so. If nobody answers within `review.timeout`, the task and its run
fail: the commit stays in quarantine, other runs go on. Clear **review** to be asked again.

### Recovery

| what you see | what to do |
| --- | --- |
| a task failed and is tried again | nothing: a try goes on with the work of the one before, even if that was killed |
| wait_for_source failed | deliver the files, clear the task |
| stage_and_judge stays scheduled | all slots of its pool (`lake_spark`, `lake_sessions`) are taken: it waits its turn |
| stage_and_judge failed, exit code 3 | the rows or the spec are wrong: correct them, clear the task |
| review failed: nobody answered, or without a reason | clear **review** to be asked again |
| publish failed: somebody discarded the commit | correct the source, clear **stage_and_judge** for a new commit |
| the same, and the rows are right after all | clear **review**, and answer `publish` |
| somebody has published the commit by `lake publish` | clear **review**: what follows a publish follows |
| publish failed, exit code 5 or 6 | another commit, or a new verdict, stands against it: clear **stage_and_judge** |
| tag, mark_done or announce failed | clear the task; all may run as often as you like |
| no rows had come, and now there are some | clear **stage_and_judge** |
| the run's note says that too many partitions have changed | backfill the tables that come after this one |
| a whole partition is wrong | clear the run, or trigger one with the same `partition` |

Clear a task with all that comes after it. That makes a new commit only if **stage_and_judge** is among it. To end a
run, mark it failed: its job is ended too.
"""

from airflow.sdk import get_parsing_context

from lake_dags.catalogue import make_dags

# A task needs its own DAG only; who looks for DAGs gets all. What is wrong with a spec is told by table_specs.py: an
# error here would keep the other DAGs from being scheduled.
globals().update(make_dags(__doc__, get_parsing_context().dag_id).dags)
