-- The moment of a transaction's snapshot, its name for other connections, and the server's version.
-- name: export_snapshot
select pg_export_snapshot() as snapshot, clock_timestamp() as now, current_setting('server_version_num')::int as version;

-- The tables of a backup, each with what its head holds; all of them, or those that are named.
-- name: list_backed_tables
select t.id, t.namespace || '.' || t.name as name, t.location, t.head_id,
       count(f.id) as files, coalesce(sum(f.row_count), 0)::bigint as stored_rows
from lake."table" t
left join lake.data_file f on f.table_id = t.id and f.added_snapshot <= t.head_id
     and coalesce(f.removed_snapshot, 9223372036854775807) > t.head_id
where t.dropped_at is null and (%(names)s::text[] is null or t.namespace || '.' || t.name = any(%(names)s))
group by t.id order by t.id;

-- The snapshots of some tables that can be read.
-- name: list_backed_snapshots
select table_id, id from lake.snapshot where table_id = any(%(table_ids)s) and expired_at is null order by table_id, id;

-- The schema that the catalog has.
-- name: list_migrations
select version, name, checksum from lake.migration order by version;

-- The files that the readable snapshots of some tables need.
-- name: list_needed_files
select distinct f.table_id, f.path, f.size_bytes from lake.data_file f
where f.table_id = any(%(table_ids)s) and f.added_snapshot is not null
  and (f.removed_snapshot is null
       or exists (select from lake.snapshot s
                  where s.table_id = f.table_id and s.expired_at is null
                    and s.id >= f.added_snapshot and s.id < f.removed_snapshot))
order by f.table_id, f.path;

-- Holds on snapshots, a lease each; returns those that could be held. Waits for an expiry under way, and sees what that
-- has done.
-- name: hold_snapshots
insert into lake.lease (id, table_id, snapshot_id, holder, expires_at)
select gen_random_uuid(), s.table_id, s.id, %(holder)s, clock_timestamp() + %(duration)s
from unnest(%(table_ids)s::bigint[], %(snapshot_ids)s::bigint[]) as w (table_id, id)
join lake.snapshot s on s.table_id = w.table_id and s.id = w.id
where s.expired_at is null
for key share of s
returning snapshot_id;

-- All holds of one holder last for another while; returns them.
-- name: renew_holds
update lake.lease set expires_at = clock_timestamp() + %(duration)s where holder = %(holder)s returning expires_at;

-- The end of all holds of one holder.
-- name: release_holds
delete from lake.lease where holder = %(holder)s;

-- Is there a catalog in this database, and was it finished? Read from the system's own tables.
-- name: find_catalog
select exists (select from pg_catalog.pg_namespace where nspname = 'lake') as present,
       exists (select from pg_catalog.pg_tables where schemaname = 'lake' and tablename = 'migration') as has_ledger,
       current_setting('server_version_num')::int as version;
