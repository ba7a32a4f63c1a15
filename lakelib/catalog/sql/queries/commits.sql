-- Attempts at the same work on the same table queue up here until the transaction's end.
-- name: lock_attempts
select pg_advisory_xact_lock(hashtextextended(%(table_id)s::text || ' ' || %(application)s, 0));

-- A newer attempt takes the place of the older ones, which can no longer publish.
-- name: take_over_attempts
update lake.commit
set state = 'expired', decided_at = clock_timestamp(), reason = 'a newer attempt took over'
where table_id = %(table_id)s and application = %(application)s and version = %(version)s and state = 'staged'
  and id <> %(commit_id)s;

-- A vacuum that is about to look for orphans waits until the transaction's end.
-- name: hold_orphans
select pg_advisory_xact_lock_shared(hashtextextended(%(table_id)s::text || ' orphans', 0));

-- The table, if it is still there: whether a vacuum has announced that it deletes files which no commit names, and which
-- may be as old as a write that began at a time.
-- name: find_reclaimed
select coalesce(orphans_before > %(began_at)s, false) as is_reclaimed
from lake."table" where id = %(table_id)s and dropped_at is null;

-- Partitions that are not there yet.
-- name: insert_partition
insert into lake.partition (table_id, key, path) values (%(table_id)s, %(key)s::bytea[], %(path)s)
on conflict (table_id, key) do nothing;

-- The id of a partition.
-- name: find_partition
select id from lake.partition where table_id = %(table_id)s and key = %(key)s::bytea[];

-- The commit itself, staged; nothing if it is there. Waits for whoever is just entering it, whose reply was lost.
-- name: insert_commit
insert into lake.commit (id, table_id, kind, state, base_snapshot_id, base_schema_id, schema_id, reads_whole_table,
                         reads_where, application, version, attempt, summary, properties)
values (%(id)s, %(table_id)s, %(kind)s, 'staged', %(base_snapshot_id)s, %(base_schema_id)s, %(schema_id)s,
        %(reads_whole_table)s, %(reads_where)s, %(application)s, %(version)s,
        1 + coalesce((select max(attempt) from lake.commit
                      where table_id = %(table_id)s and application = %(application)s and version = %(version)s
                        and state = 'staged'), 0),
        %(summary)s, %(properties)s)
on conflict (id) do nothing
returning id;

-- A file that the commit will add.
-- name: insert_file
insert into lake.data_file (table_id, commit_id, partition_id, path, depth, prefix, run, level, row_count, delete_count,
                            size_bytes, schema_id, sequence, lower_bounds, upper_bounds, null_counts)
values (%(table_id)s, %(commit_id)s, %(partition_id)s, %(path)s, %(depth)s, %(prefix)s, %(run)s, %(level)s, %(row_count)s,
        %(delete_count)s, %(size_bytes)s, %(schema_id)s, %(sequence)s, %(lower_bounds)s::bytea[],
        %(upper_bounds)s::bytea[], %(null_counts)s::bigint[]);

-- The files that the commit will take out.
-- name: insert_removals
insert into lake.commit_removal (commit_id, file_id) select %(commit_id)s, unnest(%(file_ids)s::bigint[]);

-- Which of these files are gone. Until the transaction's end nobody takes one out, and a compaction that is about to has
-- either done so or will see this commit.
-- name: lock_files
select id, removed_snapshot is not null as is_gone from lake.data_file
where id = any(%(file_ids)s::bigint[]) order by id for share;

-- The same for a compaction that is being published: then it is known which staged commits are to take out its files.
-- name: lock_removals
select f.id from lake.data_file f join lake.commit_removal r on r.file_id = f.id
where r.commit_id = %(commit_id)s order by f.id for no key update of f;

-- The files of a table that staged commits are to take out, compactions aside: they may be overtaken.
-- name: find_claims
select r.file_id from lake.commit c join lake.commit_removal r on r.commit_id = c.id
where c.table_id = %(table_id)s and c.state = 'staged' and c.kind <> 'compact';

-- The files that a staged compaction cannot take out: others have, or are to.
-- name: find_spoilt
select r.file_id from lake.commit_removal r join lake.data_file f on f.id = r.file_id
where r.commit_id = %(commit_id)s
  and (f.removed_snapshot is not null
       or exists (select from lake.commit_removal o join lake.commit c on c.id = o.commit_id
                  where o.file_id = r.file_id and c.state = 'staged' and c.kind <> 'compact'));

-- Makes sure that the commit is staged still, and stays so until the transaction's end.
-- name: lock_staged
select id from lake.commit where id = %(commit_id)s and state = 'staged' for no key update;

-- Takes files back that a staged commit was to add.
-- name: withdraw_files
delete from lake.data_file where commit_id = %(commit_id)s and path = any(%(paths)s);

-- Takes back that a staged commit was to take files out.
-- name: withdraw_removals
delete from lake.commit_removal where commit_id = %(commit_id)s and file_id = any(%(file_ids)s::bigint[]);

-- What a staged commit does, told anew.
-- name: update_summary
update lake.commit set summary = %(summary)s where id = %(commit_id)s;

-- The partitions that the commit's content depends on.
-- name: insert_reads
insert into lake.commit_read (commit_id, partition_id) select %(commit_id)s, unnest(%(partition_ids)s::bigint[]);

-- The partitions with rows added since the commit's base of which it is not known whether it read them.
-- name: find_unread_partitions
select p.id, p.key from lake.partition p
where p.id in (select f.partition_id from lake.data_file f join lake.commit c on c.table_id = f.table_id
               where c.id = %(commit_id)s and f.added_snapshot > c.base_snapshot_id
                 and f.sequence > c.base_snapshot_id)
  and not exists (select from lake.commit_read r where r.commit_id = %(commit_id)s and r.partition_id = p.id);

-- The commits to publish with their tables, locked in the order of table ids so that no two publishers wait for each other.
-- Rows that only refer to the table or the commit may be inserted meanwhile: whoever stages does not wait for a publisher.
-- name: lock_commits
select c.id, c.table_id, c.kind, c.state, c.base_snapshot_id, c.base_schema_id, c.schema_id, c.reads_whole_table,
       c.reads_where, c.application, c.version, c.reason, t.dropped_at, t.partition_by, t.head_id,
       t.namespace || '.' || t.name as table_name, coalesce(t.options ->> 'required_gate', '') as required_gate
from lake.commit c join lake."table" t on t.id = c.table_id
where c.id = any(%(commit_ids)s)
order by t.id, c.id
for no key update of t, c;

-- Nobody publishes to the table until the transaction's end, however long its connection is idle meanwhile.
-- name: hold_table
with patience as materialized (select set_config('idle_in_transaction_session_timeout', '0', true))
select t.id from lake."table" t, patience where t.id = %(table_id)s for no key update of t;

-- What stands against publishing a commit, seen under the table's lock; an earlier commit of the same transaction counts.
-- A compaction's files hold rows that were there: those with a sequence up to the base are no rows added, and what a
-- compaction takes out is no row removed. Rows removed matter where rows are ordered by a sequence of their own: a mark
-- that outlives its row would hide later ones. Of each gate the newest verdict counts; it is stale once rows have changed
-- that it rests on. Of the gate that the table requires by hash, only verdicts of that suite count.
-- name: check_commit
select
    t.head_id, t.schema_id as head_schema_id,
    (select p.version from lake.writer_progress p
     where p.table_id = c.table_id and p.application = c.application and p.version >= c.version) as done_version,
    c.kind <> 'compact' and exists (
        select from lake.done_partition d where d.table_id = c.table_id and d.reset_at is null) as has_marks,
    exists (select from lake.commit_removal r join lake.data_file f on f.id = r.file_id
            where r.commit_id = c.id and f.removed_snapshot is not null) as input_gone,
    c.kind = 'compact' and exists (
        select from lake.commit_removal r
        join lake.commit_removal o on o.file_id = r.file_id
        join lake.commit other on other.id = o.commit_id
        where r.commit_id = c.id and other.state = 'staged' and other.kind <> 'compact') as input_claimed,
    (c.reads_whole_table and exists (
        select from lake.data_file f where f.table_id = c.table_id
          and f.added_snapshot > c.base_snapshot_id and f.sequence > c.base_snapshot_id))
    or exists (
        select from lake.commit_read r join lake.data_file f on f.partition_id = r.partition_id
        where r.commit_id = c.id
          and f.added_snapshot > c.base_snapshot_id and f.sequence > c.base_snapshot_id) as rows_added,
    (c.reads_whole_table and exists (
        select from lake.data_file f where f.table_id = c.table_id and f.removed_snapshot > c.base_snapshot_id
          and not exists (select from lake.snapshot s where s.table_id = f.table_id and s.id = f.removed_snapshot
                          and s.kind = 'compact')))
    or exists (
        select from lake.commit_read r join lake.data_file f on f.partition_id = r.partition_id
        where r.commit_id = c.id and f.removed_snapshot > c.base_snapshot_id
          and not exists (select from lake.snapshot s where s.table_id = f.table_id and s.id = f.removed_snapshot
                          and s.kind = 'compact')) as rows_removed,
    cardinality(t.sequence_by) > 0 as has_sequence,
    (select jsonb_agg(jsonb_build_object('gate', v.gate, 'outcome', v.outcome, 'base', v.base_snapshot_id, 'stale',
        v.judges_table and exists (
            select from lake.snapshot s
            where s.table_id = c.table_id and s.id > v.base_snapshot_id and s.kind not in ('compact', 'evolve'))
        or v.judges_partitions and exists (
            select from (select f.partition_id from lake.data_file f where f.commit_id = c.id
                         union
                         select f.partition_id from lake.commit_removal r join lake.data_file f on f.id = r.file_id
                         where r.commit_id = c.id) touched
            join lake.data_file f on f.partition_id = touched.partition_id
            where f.added_snapshot > v.base_snapshot_id and f.sequence > v.base_snapshot_id
               or f.removed_snapshot > v.base_snapshot_id
                  and not exists (select from lake.snapshot s where s.table_id = f.table_id
                                  and s.id = f.removed_snapshot and s.kind = 'compact'))))
     from (select distinct on (v.gate) v.gate, v.outcome, v.base_snapshot_id, v.judges_partitions, v.judges_table
           from lake.verdict v
           left join lake.gate_requirement r
               on r.table_id = c.table_id and r.released_at is null and r.suite_name = v.gate
           where v.commit_id = c.id and (r.suite_hash is null or r.suite_hash = v.suite_hash)
           order by v.gate, v.id desc) v) as verdicts,
    (select jsonb_build_object('name', r.suite_name, 'version', r.suite_version, 'hash', r.suite_hash,
        'judged_otherwise', exists (
            select from lake.verdict v
            where v.commit_id = c.id and v.gate = r.suite_name and v.suite_hash <> r.suite_hash))
     from lake.gate_requirement r where r.table_id = c.table_id and r.released_at is null) as required_suite
from lake.commit c join lake."table" t on t.id = c.table_id where c.id = %(commit_id)s;

-- What an overwrite was to take out, to be found anew.
-- name: forget_removals
delete from lake.commit_removal where commit_id = %(commit_id)s;

-- All that is live in an overwrite's target.
-- name: insert_removals_of_target
insert into lake.commit_removal (commit_id, file_id)
select c.id, f.id from lake.commit c join lake.data_file f on f.table_id = c.table_id
where c.id = %(commit_id)s and f.added_snapshot is not null and f.removed_snapshot is null
  and (c.reads_whole_table or f.partition_id in (select partition_id from lake.commit_read where commit_id = c.id))
returning file_id;

-- The commit is made from the head as it is now.
-- name: rebase_commit
update lake.commit c
set base_snapshot_id = t.head_id,
    summary = c.summary || jsonb_build_object(
        'files_removed', (select count(*) from lake.commit_removal r where r.commit_id = c.id))
from lake."table" t
where c.id = %(commit_id)s and t.id = c.table_id;

-- The publish itself: the next snapshot of the table, its files stamped, the head moved.
-- name: publish_commit
with published as (
    insert into lake.snapshot (table_id, id, commit_id, kind, schema_id, committed_at, summary, properties)
    select c.table_id, t.head_id + 1, c.id, c.kind,
           case when c.schema_id <> c.base_schema_id then c.schema_id else t.schema_id end,
           greatest(clock_timestamp(), h.committed_at + interval '1 microsecond'), c.summary, c.properties
    from lake.commit c
    join lake."table" t on t.id = c.table_id
    left join lake.snapshot h on h.table_id = t.id and h.id = t.head_id
    where c.id = %(commit_id)s
    returning *
), added as (
    update lake.data_file f set added_snapshot = p.id, sequence = coalesce(f.sequence, p.id)
    from published p where f.commit_id = p.commit_id
), removed as (
    update lake.data_file f set removed_snapshot = p.id
    from lake.commit_removal r, published p where r.commit_id = p.commit_id and f.id = r.file_id
), decided as (
    update lake.commit c set state = 'published', snapshot_id = p.id, decided_at = p.committed_at
    from published p where c.id = p.commit_id
), moved as (
    update lake."table" t set head_id = p.id, schema_id = p.schema_id from published p where t.id = p.table_id
), progressed as (
    insert into lake.writer_progress (table_id, application, version, snapshot_id)
    select c.table_id, c.application, c.version, p.id from published p join lake.commit c on c.id = p.commit_id
    where c.application is not null
    on conflict (table_id, application) do update set version = excluded.version, snapshot_id = excluded.snapshot_id
)
select * from published;

-- A staged commit's end without publishing; nothing if it was decided already.
-- name: decide_commit
update lake.commit set state = %(state)s, decided_at = clock_timestamp(), reason = %(reason)s
where id = %(commit_id)s and state = 'staged'
returning id;

-- A commit as it stands.
-- name: load_commit
select c.*, t.namespace || '.' || t.name as table_name
from lake.commit c join lake."table" t on t.id = c.table_id where c.id = %(commit_id)s;

-- The snapshot that a commit became.
-- name: find_snapshot_of_commit
select * from lake.snapshot where commit_id = %(commit_id)s;

-- The snapshot that did an application's work of this version: its own, or the first later one that made it obsolete.
-- name: find_published
select s.* from lake.commit c join lake.snapshot s on s.commit_id = c.id
where c.table_id = %(table_id)s and c.application = %(application)s and c.version >= %(version)s and c.state = 'published'
order by c.version limit 1;

-- Earlier versions of a piece of work that have not appended the rows of a partition yet never will.
-- name: overtake_appends
update lake.commit c
set state = 'expired', decided_at = clock_timestamp(), reason = 'a later version took over'
where c.table_id = %(table_id)s and c.application = %(application)s and c.version < %(version)s
  and c.state in ('staged', 'rejected') and c.kind = 'append' and c.properties ->> 'partition' = %(partition)s;

-- The snapshot in which an earlier version of a piece of work has appended rows of a partition.
-- name: find_appended
select c.snapshot_id from lake.commit c
where c.table_id = %(table_id)s and c.application = %(application)s and c.version < %(version)s
  and c.state = 'published' and c.kind = 'append' and c.properties ->> 'partition' = %(partition)s
  and (c.summary ->> 'rows_written')::bigint > 0
order by c.version desc limit 1;

-- The commit that counts for a piece of work: one that has published it (its own, or the first later one that made it
-- obsolete), else the newest that has not expired.
-- name: find_attempt
select id, state, base_snapshot_id, snapshot_id, reason, summary from lake.commit
where table_id = %(table_id)s and application = %(application)s
  and (state = 'published' and version >= %(version)s or state in ('staged', 'rejected') and version = %(version)s)
order by state = 'published' desc, version, staged_at desc, id limit 1;

-- A person's decision to publish a commit whatever its gate says, which its snapshot will tell.
-- name: approve_commit
update lake.commit set approved_by = %(by)s, approval_reason = %(reason)s,
    properties = properties || jsonb_build_object('approved_by', %(by)s::text, 'approval_reason', %(reason)s::text)
where id = %(commit_id)s;

-- The state of a commit, which stays so until the transaction's end.
-- name: lock_commit
select c.id, c.state, c.reason, t.namespace || '.' || t.name as table_name
from lake.commit c join lake."table" t on t.id = c.table_id where c.id = %(commit_id)s
for no key update of c;

-- A gate's verdict on a commit.
-- name: insert_verdict
insert into lake.verdict (commit_id, gate, outcome, base_snapshot_id, evidence, judged_at, suite_hash, engine, seconds,
                          judges_partitions, judges_table)
values (%(commit_id)s, %(gate)s, %(outcome)s, %(base_snapshot_id)s, %(evidence)s, %(judged_at)s, %(suite_hash)s,
        %(engine)s, %(seconds)s, %(judges_partitions)s, %(judges_table)s);

-- The newest verdict on a commit, by whatever gate.
-- name: find_verdict
select * from lake.verdict where commit_id = %(commit_id)s order by id desc limit 1;

-- The partitions that publishing a commit changes: those of files that it adds, or takes out.
-- name: find_touched_partitions
select f.partition_id from lake.data_file f where f.commit_id = %(commit_id)s
union
select f.partition_id from lake.commit_removal r join lake.data_file f on f.id = r.file_id
where r.commit_id = %(commit_id)s;
