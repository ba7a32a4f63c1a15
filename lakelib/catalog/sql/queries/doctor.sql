-- The tables that are there, with their locations.
-- name: list_examined_tables
select t.id, t.namespace || '.' || t.name as name, t.location
from lake."table" t
where t.dropped_at is null order by t.namespace, t.name;

-- The first and the last id among a table's files; null without files. What is staged later has a higher one.
-- name: find_file_span
select min(id) as first_id, max(id) as last_id from lake.data_file where table_id = %(table_id)s;

-- What the catalog knows of these paths: the file's id and size, or that it waits to be deleted, or is a mask's. Of one that was named
-- again the newest comes last.
-- name: find_known_files
select f.path, f.id, f.size_bytes from lake.data_file f
where f.table_id = %(table_id)s and f.path = any(%(paths)s)
union all
select q.path, null, q.size_bytes from lake.deletion_queue q
where q.table_id = %(table_id)s and q.path = any(%(paths)s)
union all
select m.path, null, m.size_bytes from lake.mask m
where m.table_id = %(table_id)s and m.path = any(%(paths)s)
union all
select m.path, null, m.size_bytes from lake.shown_mask m
where m.table_id = %(table_id)s and m.path = any(%(paths)s)
order by 2 nulls first;

-- The next files of a table, by path, with the keys of their partitions; one that was named again once.
-- name: list_examined_files
select f.*, p.key from lake.data_file f join lake.partition p on p.id = f.partition_id
where f.table_id = %(table_id)s and f.path > %(after)s and f.id <= %(last_id)s
  and not exists (select from lake.data_file o where o.table_id = f.table_id and o.path = f.path
                  and o.id > f.id and o.id <= %(last_id)s)
order by f.path limit %(limit)s;

-- Which of these files does the catalog still name?
-- name: find_named_files
select id from lake.data_file where id = any(%(ids)s);

-- Holds on snapshots that have run out long ago or last for long, together where one reader has several.
-- name: list_doubtful_leases
select t.namespace || '.' || t.name as table_name, l.holder, count(*) as leases, min(l.snapshot_id) as first_id,
       max(coalesce(l.last_snapshot_id, l.snapshot_id)) as last_id, max(l.expires_at) as expires_at, clock_timestamp() as now
from lake.lease l join lake."table" t on t.id = l.table_id
where l.table_id = any(%(table_ids)s) and t.dropped_at is null
  and (l.expires_at < clock_timestamp() - %(spent_for)s or l.expires_at > clock_timestamp() + %(held_for)s)
group by t.namespace, t.name, l.holder order by 1, 2;

-- Holds that have run out long ago go; returns one row each.
-- name: drop_long_spent_leases
delete from lake.lease l using lake."table" t
where t.id = l.table_id and l.table_id = any(%(table_ids)s) and l.expires_at < clock_timestamp() - %(spent_for)s
returning t.namespace || '.' || t.name as table_name, 'lease of ' || l.holder as place;

-- Commits that nobody has decided about for long, which keep snapshots from expiring.
-- name: list_waiting_commits
select t.namespace || '.' || t.name as table_name, c.id, c.state, c.base_snapshot_id,
       greatest(c.staged_at, c.decided_at) as since, clock_timestamp() as now
from lake.commit c join lake."table" t on t.id = c.table_id
where c.table_id = any(%(table_ids)s) and t.dropped_at is null and c.state <> 'published'
  and c.state in ('staged', 'rejected') and greatest(c.staged_at, c.decided_at) < clock_timestamp() - %(waited_for)s
order by since limit %(limit)s;

-- Heads that are no snapshots, have expired, or are not the newest.
-- name: check_heads
select t.namespace || '.' || t.name as table_name, 'snapshot ' || t.head_id as place,
       case when s.id is null then 'the head is no snapshot'
            when s.expired_at is not null then 'the head has expired'
            else 'the head is below snapshot ' || n.newest_id end as detail
from lake."table" t
left join lake.snapshot s on s.table_id = t.id and s.id = t.head_id
left join lateral (select max(id) as newest_id from lake.snapshot where table_id = t.id) n on true
where t.id = any(%(table_ids)s) and t.dropped_at is null
  and (t.head_id > 0 and (s.id is null or s.expired_at is not null) or coalesce(n.newest_id, 0) > t.head_id)
limit %(limit)s;

-- Tables whose history has gaps: a snapshot stays as a row when it expires.
-- name: check_gaps
select t.namespace || '.' || t.name as table_name, 'snapshots 1 to ' || t.head_id as place,
       (t.head_id - count(s.id)) || ' of them are not there' as detail
from lake."table" t left join lake.snapshot s on s.table_id = t.id and s.id <= t.head_id
where t.id = any(%(table_ids)s) and t.dropped_at is null
group by t.id having count(s.id) <> t.head_id
limit %(limit)s;

-- Files that a snapshot has added or removed which is not there, or is another commit's.
-- name: check_file_snapshots
select t.namespace || '.' || t.name as table_name, f.path as place,
       case when a.id is null and f.added_snapshot is not null then 'it was added by snapshot ' || f.added_snapshot || ', which is not there'
            when f.added_snapshot is not null and a.commit_id <> f.commit_id
                then 'it belongs to commit ' || f.commit_id || ', and snapshot ' || f.added_snapshot || ' is another''s'
            when f.added_snapshot is null and f.removed_snapshot is not null then 'it was removed and never added'
            else 'it was removed by snapshot ' || f.removed_snapshot || ', which is not there' end as detail
from lake.data_file f
join lake."table" t on t.id = f.table_id
left join lake.snapshot a on a.table_id = f.table_id and a.id = f.added_snapshot
left join lake.snapshot r on r.table_id = f.table_id and r.id = f.removed_snapshot
where f.table_id = any(%(table_ids)s) and t.dropped_at is null
  and (f.added_snapshot is not null and (a.id is null or a.commit_id <> f.commit_id)
       or f.removed_snapshot is not null and (r.id is null or f.added_snapshot is null))
limit %(limit)s;

-- Files of a published commit that are in no snapshot: readers miss their rows.
-- name: check_unstamped_files
select t.namespace || '.' || t.name as table_name, f.path as place,
       'commit ' || c.id || ' was published as snapshot ' || c.snapshot_id || ' without it' as detail
from lake.data_file f
join lake."table" t on t.id = f.table_id
join lake.commit c on c.id = f.commit_id
where f.table_id = any(%(table_ids)s) and t.dropped_at is null and f.added_snapshot is null and c.state = 'published'
limit %(limit)s;

-- Commits whose state and snapshots disagree.
-- name: check_commits
select t.namespace || '.' || t.name as table_name, 'commit ' || c.id as place,
       case when c.state <> 'published' then 'it is ' || c.state || ', and snapshot ' || s.id || ' was made of it'
            when s.id is null then 'it was published as snapshot ' || c.snapshot_id || ', which is not there'
            else 'it was published as snapshot ' || c.snapshot_id || ', and snapshot ' || s.id || ' was made of it' end as detail
from lake.commit c
join lake."table" t on t.id = c.table_id
left join lake.snapshot s on s.commit_id = c.id
where c.table_id = any(%(table_ids)s) and t.dropped_at is null
  and (c.state = 'published') is distinct from (s.id is not null) or
      c.table_id = any(%(table_ids)s) and t.dropped_at is null and s.id is not null
      and (s.id is distinct from c.snapshot_id or s.table_id <> c.table_id)
limit %(limit)s;

-- One piece of work that was published twice, or whose progress is behind what was published.
-- name: check_progress
select t.namespace || '.' || t.name as table_name, 'application ' || d.application as place, d.detail
from (select c.table_id, c.application,
             'version ' || c.version || ' was published ' || count(*) || ' times' as detail
      from lake.commit c
      where c.table_id = any(%(table_ids)s) and c.state = 'published' and c.application is not null
      group by c.table_id, c.application, c.version having count(*) > 1
      union all
      select c.table_id, c.application,
             'version ' || max(c.version) || ' was published, and its progress is noted as '
             || coalesce(max(w.version)::text, 'nothing')
      from lake.commit c
      left join lake.writer_progress w on w.table_id = c.table_id and w.application = c.application
      where c.table_id = any(%(table_ids)s) and c.state = 'published' and c.application is not null
      group by c.table_id, c.application having coalesce(max(w.version) < max(c.version), true)) d
join lake."table" t on t.id = d.table_id
where t.dropped_at is null
limit %(limit)s;

-- Files that are to be deleted although a commit names them.
-- name: check_queue
select t.namespace || '.' || t.name as table_name, f.path as place,
       case when q.not_before <= clock_timestamp() then 'the next vacuum deletes it'
            else 'a vacuum deletes it from ' || q.not_before::text || ' on' end as detail
from lake.deletion_queue q
join lake.data_file f on f.table_id = q.table_id and f.path = q.path
join lake."table" t on t.id = q.table_id
where q.table_id = any(%(table_ids)s)
limit %(limit)s;

-- Files that a commit names are not to be deleted any more; returns one row each.
-- name: unqueue_named_files
delete from lake.deletion_queue q using lake.data_file f, lake."table" t
where f.table_id = q.table_id and f.path = q.path and t.id = q.table_id and q.table_id = any(%(table_ids)s)
returning t.namespace || '.' || t.name as table_name, q.path as place;

-- The next masks of a table that are files, by path.
-- name: list_examined_masks
select m.path, f.path as masked_path
from lake.mask m join lake.data_file f on f.id = m.file_id
where m.table_id = %(table_id)s and m.path > %(after)s
order by m.path limit %(limit)s;

-- Those of some paths that a mask still has.
-- name: find_masks_still_there
select m.path from lake.mask m where m.table_id = %(table_id)s and m.path = any(%(paths)s);

-- Snapshots that are ahead of the catalog's clock.
-- name: check_future
select t.namespace || '.' || t.name as table_name, 'snapshot ' || s.id as place,
       'it was committed at ' || s.committed_at::text || ', and it is ' || clock_timestamp()::text as detail
from lake.snapshot s join lake."table" t on t.id = s.table_id
where s.table_id = any(%(table_ids)s) and t.dropped_at is null and s.expired_at is null
  and s.committed_at > clock_timestamp() + %(tolerance)s
order by s.table_id, s.id limit %(limit)s;

-- Indexes of the catalog that PostgreSQL does not use: a constraint that nobody checks.
-- name: check_indexes
select null as table_name, 'index ' || i.indexrelid::regclass::text as place,
       'PostgreSQL says that it is not valid' as detail
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'lake' and not (i.indisvalid and i.indisready)
limit %(limit)s;
