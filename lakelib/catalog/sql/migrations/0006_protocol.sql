-- The commit protocol as functions; what it needs to know of commits that were amended, of verdicts on several commits
-- together, and of a commit whose turn it is. All that is published together has one moment.
alter table lake."table" add column turn_of uuid, add column turn_until timestamptz;
alter table lake.commit add column amendment integer not null default 0;
alter table lake.verdict
    add column amendment integer not null default 0,
    add column beneath uuid[] not null default '{}';
alter table lake.snapshot drop constraint snapshot_table_id_committed_at_key;

-- include: functions/stage_v1.sql
-- include: functions/publish_v1.sql
-- include: functions/amend_v1.sql
-- include: functions/judge_v1.sql
-- include: functions/end_v1.sql
-- include: functions/holds_past_v1.sql
