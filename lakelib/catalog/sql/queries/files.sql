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

-- The partitions of a snapshot with what they hold.
-- name: summarise_partitions
select p.id, p.key, p.path, count(*) as files, sum(f.row_count)::bigint as stored_rows,
       sum(f.size_bytes)::bigint as size_bytes, max(f.sequence) as newest_snapshot
from lake.data_file f join lake.partition p on p.id = f.partition_id
where f.table_id = %(table_id)s
  and f.added_snapshot <= %(snapshot_id)s and coalesce(f.removed_snapshot, 9223372036854775807) > %(snapshot_id)s
group by p.id, p.key, p.path order by p.key;
