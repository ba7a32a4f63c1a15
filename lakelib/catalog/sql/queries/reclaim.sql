-- Files that may be deleted now, oldest first.
-- name: list_due_files
select q.id, q.table_id, q.path, q.size_bytes, t.location from lake.deletion_queue q join lake."table" t on t.id = q.table_id
where q.not_before <= clock_timestamp() and q.id > %(after_id)s
order by q.id limit %(limit)s;

-- Files that are deleted.
-- name: forget_deleted_files
select lake.forget_deleted_files_v1(%(ids)s::bigint[]);

-- What waits in the queue and may not be deleted yet.
-- name: count_waiting_files
select count(*) as files from lake.deletion_queue where not_before > clock_timestamp();

-- All tables that have ever had files and have not been reclaimed, in the order of their ids.
-- name: list_locations
select id, namespace || '.' || name as name, location, dropped_at, dropped_at <= %(dropped_before)s as is_due
from lake."table" order by id;

-- Writes that began before this time, and are not staged yet, may lose files from now on.
-- name: mark_orphans
select lake.mark_orphans_v1(%(table_id)s, %(before)s);

-- Whoever is staging files has staged them.
-- name: await_stagings
select pg_advisory_xact_lock(hashtextextended(%(table_id)s::text || ' orphans', 0));

-- Which of these files does the catalog not know? Neither live, nor staged, nor to be deleted later.
-- name: find_unknown_files
select p.path from unnest(%(paths)s::text[]) as p (path)
where not exists (select from lake.data_file f where f.table_id = %(table_id)s and f.path = p.path)
  and not exists (select from lake.mask m where m.table_id = %(table_id)s and m.path = p.path)
  and not exists (select from lake.shown_mask m where m.table_id = %(table_id)s and m.path = p.path)
  and not exists (select from lake.deletion_queue q where q.table_id = %(table_id)s and q.path = p.path);

-- Is somebody reading a table?
-- name: find_live_lease
select id from lake.lease where table_id = %(table_id)s and expires_at > clock_timestamp() limit 1;

-- Nothing of a dropped table can be published or read any more, unless somebody reads it now.
-- name: retire_dropped
select lake.retire_dropped_v1(%(table_id)s);

-- Some files of a dropped table without snapshots go to the queue, due at once.
-- name: queue_files_of_dropped
select lake.queue_files_of_dropped_v1(%(table_id)s, %(limit)s::integer) as files;

-- The files that a table has in the catalog.
-- name: list_files_of_table
select distinct path, size_bytes from lake.data_file where table_id = %(table_id)s
union all
select path, size_bytes from lake.mask where table_id = %(table_id)s and path is not null
union all
select path, size_bytes from lake.shown_mask where table_id = %(table_id)s;

-- A dropped table that has no files and no readers any more leaves the catalog; nothing if it has.
-- name: forget_dropped
select lake.forget_dropped_v1(%(table_id)s);
