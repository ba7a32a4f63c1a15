-- A proposal enters the catalog, and is published at once if `publishing` says how.
-- name: stage
select lake.stage_v1(%(proposal)s, %(publishing)s) as answer;

-- Commits become snapshots, all or none.
-- name: publish
select lake.publish_v1(%(commit_ids)s, %(publishing)s) as answer;

-- A staged commit changes.
-- name: amend
select lake.amend_v1(%(change)s) as answer;

-- A staged overwrite finds anew what is in its target.
-- name: retarget
select lake.retarget_v1(%(commit_id)s, %(publishing)s) as answer;

-- A place in the line of those who wait to publish to a table, for so long; how many are before it.
-- name: take_turn
select lake.turn_v1(%(table_id)s, %(turn)s, %(turn_ms)s) as ahead;

-- It leaves the lines that it stands in.
-- name: release_turn
select lake.release_turn_v1(%(turn)s);

-- A staged commit's end without publishing.
-- name: end
select lake.end_v1(%(commit_id)s, %(state)s, %(reason)s) as answer;

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

-- A commit as it stands.
-- name: load_commit
select c.*, t.namespace || '.' || t.name as table_name
from lake.commit c join lake."table" t on t.id = c.table_id where c.id = %(commit_id)s;

-- Commits whose ids lie in a range, of tables that were not dropped.
-- name: find_commits_between
select c.*, t.namespace || '.' || t.name as table_name
from lake.commit c join lake."table" t on t.id = c.table_id
where c.id between %(lowest)s and %(highest)s and t.dropped_at is null
order by c.id
limit %(limit)s;

-- The snapshot that did an application's work of this version: its own, or the first later one that made it obsolete.
-- name: find_published
select s.* from lake.commit c join lake.snapshot s on s.commit_id = c.id
where c.table_id = %(table_id)s and c.application = %(application)s and c.version >= %(version)s and c.state = 'published'
order by c.version limit 1;

-- Earlier versions of a piece of work that have not appended the rows of a partition yet never will.
-- name: overtake_appends
select lake.overtake_appends_v1(%(table_id)s, %(application)s, %(version)s, %(partition)s);

-- The snapshot in which an earlier version of a piece of work has appended rows of a partition.
-- name: find_appended
select c.snapshot_id from lake.commit c
where c.table_id = %(table_id)s and c.application = %(application)s and c.version < %(version)s
  and c.state = 'published' and c.kind = 'append' and c.properties ->> 'partition' = %(partition)s
  and (c.summary ->> 'rows_written')::bigint > 0
order by c.version desc limit 1;

-- The partition of the newest overwrite that an ingest has published, and its snapshot.
-- name: find_newest_copy
select c.snapshot_id, c.properties ->> 'partition' as partition from lake.commit c
where c.table_id = %(table_id)s and c.state = 'published' and c.kind = 'overwrite' and c.properties ? 'partition'
order by c.snapshot_id desc limit 1;

-- The commit that filled the partition before, of those that a gate has judged and that were published.
-- name: find_judged_before
select c.id, c.summary, c.properties ->> 'partition' as partition from lake.commit c
where c.table_id = %(table_id)s and c.state = 'published'
  and (c.properties ->> 'partition') collate "C" < %(partition)s
  and exists (select from lake.verdict v where v.commit_id = c.id and v.gate = %(gate)s)
order by (c.properties ->> 'partition') collate "C" desc, c.snapshot_id desc limit 1;

-- The commit that counts for a piece of work: one that has published it (its own, or the first later one that made it
-- obsolete), else the newest that has not expired.
-- name: find_attempt
select id, version, state, base_snapshot_id, snapshot_id, reason, summary, properties from lake.commit
where table_id = %(table_id)s and application = %(application)s
  and (state = 'published' and version >= %(version)s or state in ('staged', 'rejected') and version = %(version)s)
order by state = 'published' desc, version, staged_at desc, id limit 1;

-- Whether a staged commit was made from rows of its table that others have changed since its base.
-- name: is_overtaken
select exists (
    select from lake.commit c join lake.data_file f on f.table_id = c.table_id
    where c.id = %(commit_id)s and c.state = 'staged' and c.rows_from_base
      and (f.added_snapshot > c.base_snapshot_id and f.sequence > c.base_snapshot_id
           or exists (select from lake.rolled_back_v1(c.table_id, c.base_snapshot_id))
           or f.removed_snapshot > c.base_snapshot_id and not exists (
                  select from lake.snapshot s
                  where s.table_id = f.table_id and s.id = f.removed_snapshot and s.kind = 'compact'))) as is_overtaken;

-- Whether commits that are staged, to be published before another one, bring rows where that one has looked without
-- knowing of theirs, or take out what it was made from or takes out, too: then it could not be published behind them.
-- name: is_in_the_way
select exists (
    select from lake.commit c join lake.data_file f on f.table_id = c.table_id
    where c.id = %(commit_id)s and f.commit_id = any(%(beneath)s) and f.sequence is null
      and f.commit_id <> all(c.reads_beneath)
      and (c.reads_whole_table or c.rows_from_base
           or exists (select from lake.commit_read r where r.commit_id = c.id and r.partition_id = f.partition_id))
) or exists (
    select from lake.commit c join lake.commit_removal other on other.commit_id = any(%(beneath)s)
    where c.id = %(commit_id)s
      and (c.rows_from_base and other.commit_id <> all(c.reads_beneath)
           or exists (select from lake.commit_removal own
                      where own.commit_id = c.id and own.file_id = other.file_id))) as is_in_the_way;

-- A verdict is kept with its commit.
-- name: judge
select lake.judge_v1(%(verdict)s, %(rejection)s) as answer;

-- The newest verdict on a commit, by whatever gate.
-- name: find_verdict
select * from lake.verdict where commit_id = %(commit_id)s order by id desc limit 1;

-- The verdicts on a table's commits, oldest first.
-- name: list_verdicts
select v.* from lake.verdict v join lake.commit c on c.id = v.commit_id where c.table_id = %(table_id)s order by v.id;

-- The partitions that publishing a commit changes: those of files that it adds, or takes out.
-- name: find_touched_partitions
select f.partition_id from lake.data_file f where f.commit_id = %(commit_id)s
union
select f.partition_id from lake.commit_removal r join lake.data_file f on f.id = r.file_id
where r.commit_id = %(commit_id)s;

-- The schema of the last of commits, in their order, that changes it.
-- name: find_schema_changed
select c.schema_id from lake.commit c
where c.id = any(%(commit_ids)s::uuid[]) and c.schema_id <> c.base_schema_id
order by array_position(%(commit_ids)s::uuid[], c.id) desc limit 1;

-- A person decides against a commit.
-- name: discard
select lake.discard_v1(%(commit_id)s, %(by)s, %(reason)s) as answer;

