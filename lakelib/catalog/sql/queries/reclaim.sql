-- Files that may be deleted now, oldest first.
-- name: list_due_files
select q.id, q.table_id, q.path, q.size_bytes, t.location from lake.deletion_queue q join lake."table" t on t.id = q.table_id
where q.not_before <= clock_timestamp() and q.id > %(after_id)s
order by q.id limit %(limit)s;

-- Files that are deleted.
-- name: forget_deleted_files
delete from lake.deletion_queue where id = any(%(ids)s);

-- What waits in the queue and may not be deleted yet.
-- name: count_waiting_files
select count(*) as files from lake.deletion_queue where not_before > clock_timestamp();

-- All tables that have ever had files and have not been reclaimed, in the order of their ids.
-- name: list_locations
select id, namespace || '.' || name as name, location, dropped_at, dropped_at <= %(dropped_before)s as is_due
from lake."table" order by id;

-- Writes that began before this time, and are not staged yet, may lose files from now on.
-- name: mark_orphans
update lake."table" set orphans_before = greatest(orphans_before, %(before)s) where id = %(table_id)s;

-- Whoever is staging files has staged them.
-- name: await_stagings
select pg_advisory_xact_lock(hashtextextended(%(table_id)s::text || ' orphans', 0));

-- Which of these files does the catalog not know? Neither live, nor staged, nor to be deleted later.
-- name: find_unknown_files
select p.path from unnest(%(paths)s::text[]) as p (path)
where not exists (select from lake.data_file f where f.table_id = %(table_id)s and f.path = p.path)
  and not exists (select from lake.deletion_queue q where q.table_id = %(table_id)s and q.path = p.path);

-- Is somebody reading a table?
-- name: find_live_lease
select id from lake.lease where table_id = %(table_id)s and expires_at > clock_timestamp() limit 1;

-- Commits to a dropped table can no longer be published.
-- name: expire_commits_of_dropped
update lake.commit set state = 'expired', decided_at = clock_timestamp(), reason = 'the table was dropped'
where table_id = %(table_id)s and state <> 'published' and state in ('staged', 'rejected');

-- The snapshots of a dropped table, all of them, locked against whoever takes a lease.
-- name: lock_snapshots_of_dropped
select id from lake.snapshot where table_id = %(table_id)s and expired_at is null order by id for update;

-- They expire, unless somebody reads one.
-- name: expire_snapshots_of_dropped
update lake.snapshot s set expired_at = clock_timestamp()
where s.table_id = %(table_id)s and s.expired_at is null
  and not exists (select from lake.lease l where l.table_id = %(table_id)s and l.expires_at > clock_timestamp());

-- Some files of a dropped table without snapshots go to the queue, due at once.
-- name: queue_files_of_dropped
with own as materialized (
    select f.id from lake.data_file f
    where f.table_id = %(table_id)s
      and not exists (select from lake.snapshot s where s.table_id = %(table_id)s and s.expired_at is null)
    limit %(limit)s
), forgotten as (
    delete from lake.commit_removal r using own where r.file_id = own.id
), gone as (
    delete from lake.data_file f using own where f.id = own.id returning f.table_id, f.path, f.size_bytes
), queued as (
    insert into lake.deletion_queue (table_id, path, size_bytes, not_before)
    select table_id, path, size_bytes, clock_timestamp() from gone
    on conflict (table_id, path) do nothing
)
select count(*) as files from gone;

-- The files that a table has in the catalog.
-- name: list_files_of_table
select path, size_bytes from lake.data_file where table_id = %(table_id)s;

-- A dropped table that has no files and no readers any more leaves the catalog; nothing if it has.
-- name: forget_dropped
with gone as materialized (
    select t.id from lake."table" t
    where t.id = %(table_id)s and t.dropped_at is not null
      and not exists (select from lake.data_file f where f.table_id = t.id)
      and not exists (select from lake.deletion_queue q where q.table_id = t.id)
      and not exists (select from lake.snapshot s where s.table_id = t.id and s.expired_at is null)
    for update
), gone_commits as materialized (
    select c.id from lake.commit c join gone on gone.id = c.table_id
), reads as (
    delete from lake.commit_read r using gone_commits c where r.commit_id = c.id
), removals as (
    delete from lake.commit_removal r using gone_commits c where r.commit_id = c.id
), verdicts as (
    delete from lake.verdict v using gone_commits c where v.commit_id = c.id
), marks as (
    delete from lake.done_partition d using gone where d.table_id = gone.id
), tags as (
    delete from lake.tag g using gone where g.table_id = gone.id
), leases as (
    delete from lake.lease l using gone where l.table_id = gone.id
), progress as (
    delete from lake.writer_progress p using gone where p.table_id = gone.id
), snapshots as (
    delete from lake.snapshot s using gone where s.table_id = gone.id
), commits as (
    delete from lake.commit c using gone where c.table_id = gone.id
), partitions as (
    delete from lake.partition p using gone where p.table_id = gone.id
), schemas as (
    delete from lake.table_schema s using gone where s.table_id = gone.id
)
delete from lake."table" t using gone where t.id = gone.id;
