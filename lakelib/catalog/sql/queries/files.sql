-- Partitions by id.
-- name: load_partitions
select id, key, path from lake.partition where id = any(%(ids)s);

-- Partitions of a table that may match; {condition} is made by catalog.pruning.
-- name: find_partitions
select p.id, p.key, p.path from lake.partition p where p.table_id = %(table_id)s and ({condition});

-- Files of a snapshot; {columns} and {condition} are made by catalog.files.
-- name: load_files
select {columns} from lake.data_file f
where f.table_id = %(table_id)s and ({condition})
  and f.added_snapshot <= %(snapshot_id)s and coalesce(f.removed_snapshot, 9223372036854775807) > %(snapshot_id)s
order by f.partition_id, f.sequence, f.run, f.prefix, f.id;

-- Files that came or went after one snapshot and up to another; {columns} and {condition} are made by catalog.files.
-- name: load_moved_files
select {columns} from lake.data_file f
where f.table_id = %(table_id)s and ({condition})
  and (f.added_snapshot > %(since)s and f.added_snapshot <= %(snapshot_id)s
       or f.removed_snapshot > %(since)s and f.removed_snapshot <= %(snapshot_id)s)
order by f.partition_id, f.sequence, f.run, f.prefix, f.id;

-- Files that were there at a snapshot or at one of those from another to it; {columns} and {condition} are made by
-- catalog.files.
-- name: load_past_files
select {columns} from lake.data_file f
where f.table_id = %(table_id)s and ({condition})
  and f.added_snapshot <= %(snapshot_id)s and coalesce(f.removed_snapshot, 9223372036854775807) > %(since)s
order by f.partition_id, f.sequence, f.run, f.prefix, f.id;

-- Files of a snapshot as staged commits would leave it, one after the other; {columns} and {condition} are made by
-- catalog.files.
-- name: load_merged_files
select {columns} from lake.data_file f
where f.table_id = %(table_id)s and ({condition})
  and (f.commit_id = any(%(commit_ids)s::uuid[]) and coalesce(f.added_snapshot, 9223372036854775807) > %(snapshot_id)s
       or f.added_snapshot <= %(snapshot_id)s
          and coalesce(f.removed_snapshot, 9223372036854775807) > %(snapshot_id)s
          and not exists (select from lake.commit_removal r
                          where r.commit_id = any(%(commit_ids)s::uuid[]) and r.file_id = f.id))
order by f.partition_id, f.sequence nulls last, array_position(%(commit_ids)s::uuid[], f.commit_id), f.run, f.prefix,
         f.id;

-- Files that a commit adds; {columns} and {condition} are made by catalog.files.
-- name: load_commit_files
select {columns} from lake.data_file f
where f.table_id = %(table_id)s and ({condition}) and f.commit_id = %(commit_id)s
order by f.partition_id, f.run, f.prefix, f.id;

-- Files of a snapshot with the keys of their partitions, for a listing.
-- name: list_files
select f.path, f.depth, f.prefix, f.level, f.row_count, f.delete_count, f.size_bytes, f.added_snapshot, p.key
from lake.data_file f join lake.partition p on p.id = f.partition_id
where f.table_id = %(table_id)s
  and f.added_snapshot <= %(snapshot_id)s and coalesce(f.removed_snapshot, 9223372036854775807) > %(snapshot_id)s
order by f.id;

-- How many files a snapshot has.
-- name: count_files
select count(*) as files from lake.data_file f
where f.table_id = %(table_id)s
  and f.added_snapshot <= %(snapshot_id)s and coalesce(f.removed_snapshot, 9223372036854775807) > %(snapshot_id)s;

-- The partitions whose files a snapshot has added or removed, with what was there before it and comes with it. Of those
-- that it has replaced, also the newest snapshot that had touched them before.
-- name: list_touched
with touched as (
    select f.partition_id, f.id, f.added_snapshot, f.removed_snapshot, f.size_bytes
    from lake.data_file f where f.table_id = %(table_id)s and f.added_snapshot = %(snapshot_id)s
    union
    select f.partition_id, f.id, f.added_snapshot, f.removed_snapshot, f.size_bytes
    from lake.data_file f where f.table_id = %(table_id)s and f.removed_snapshot = %(snapshot_id)s
), sums as (
    select t.partition_id,
           bool_or(t.added_snapshot = %(snapshot_id)s) and bool_or(t.removed_snapshot = %(snapshot_id)s) as is_replaced,
           sum(t.size_bytes)::bigint as size_bytes
    from touched t group by t.partition_id
)
select p.id, p.key, p.path, s.is_replaced, s.size_bytes,
       case when s.is_replaced then (
           select greatest(
               max(f.sequence) filter (where f.sequence < %(snapshot_id)s),
               max(f.added_snapshot) filter (where f.added_snapshot < %(snapshot_id)s and a.kind = 'rollback'),
               max(f.removed_snapshot) filter (where f.removed_snapshot < %(snapshot_id)s and n.kind <> 'compact'))
           from lake.data_file f
           left join lake.snapshot a on a.table_id = f.table_id and a.id = f.added_snapshot
           left join lake.snapshot n on n.table_id = f.table_id and n.id = f.removed_snapshot
           where f.partition_id = p.id)
       end as previous_snapshot
from sums s join lake.partition p on p.id = s.partition_id
order by p.key;

-- The partitions of a snapshot with what they hold, and the newest snapshot that has brought rows, or brought them back.
-- name: summarise_partitions
select p.id, p.key, p.path, count(*) as files, sum(f.row_count)::bigint as stored_rows,
       sum(f.size_bytes)::bigint as size_bytes,
       greatest(max(f.sequence), (
           select max(b.id) from lake.snapshot b
           where b.table_id = %(table_id)s and b.id <= %(snapshot_id)s and b.kind = 'rollback'
             and p.id in (select d.partition_id from lake.data_file d where d.table_id = b.table_id and d.added_snapshot = b.id
                          union all
                          select d.partition_id from lake.data_file d
                          where d.table_id = b.table_id and d.removed_snapshot = b.id))) as newest_snapshot
from lake.data_file f join lake.partition p on p.id = f.partition_id
where f.table_id = %(table_id)s
  and f.added_snapshot <= %(snapshot_id)s and coalesce(f.removed_snapshot, 9223372036854775807) > %(snapshot_id)s
group by p.id, p.key, p.path order by p.key;

-- The partitions of a table that have these folders.
-- name: find_partitions_at
select id from lake.partition where table_id = %(table_id)s and path = any(%(paths)s::text[]);

-- The files that come back when a table is brought back to a snapshot, and those that go.
-- name: find_moved
select f.path, f.partition_id, f.row_count, f.delete_count, f.size_bytes, m.is_restored
from lake.find_rollback_v1(%(table_id)s, %(target)s) m join lake.data_file f on f.id = m.file_id
order by f.id;
