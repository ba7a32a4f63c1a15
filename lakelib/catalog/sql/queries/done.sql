-- A partition's mark with what is needed to act on it.
-- name: load_mark
select d.*, t.namespace || '.' || t.name as table_name, t.location, p.key, p.path
from lake.done_partition d
join lake."table" t on t.id = d.table_id
join lake.partition p on p.id = d.partition_id
where d.table_id = %(table_id)s and d.partition_id = %(partition_id)s;

-- The mark of a partition by its key, whatever became of it.
-- name: find_mark
select d.*, t.namespace || '.' || t.name as table_name, t.location, p.key, p.path
from lake.done_partition d
join lake."table" t on t.id = d.table_id
join lake.partition p on p.id = d.partition_id
where p.table_id = %(table_id)s and p.key = %(key)s::bytea[] and d.table_id = p.table_id;

-- A table's marks in the order of their partitions; those that were reset only if they are asked for.
-- name: list_marks
select d.*, t.namespace || '.' || t.name as table_name, t.location, p.key, p.path
from lake.done_partition d
join lake."table" t on t.id = d.table_id
join lake.partition p on p.id = d.partition_id
where d.table_id = %(table_id)s and (d.reset_at is null or %(with_reset)s) order by p.key;

-- The marks that a snapshot was the last to take back, made again since or not.
-- name: list_marks_reset_by
select d.*, t.namespace || '.' || t.name as table_name, t.location, p.key, p.path
from lake.done_partition d
join lake."table" t on t.id = d.table_id
join lake.partition p on p.id = d.partition_id
where d.table_id = %(table_id)s and d.reset_snapshot = %(snapshot_id)s order by p.key;

-- A partition is done as of a snapshot. Marking it again keeps the time of the first mark.
-- name: mark_partition
select id from lake.mark_partition_v1(%(table_id)s, %(key)s::bytea[], %(path)s, %(success_file)s) as id;

-- The marks that were reset and whose files may still be there: of one table, or of all.
-- name: list_outdated_files
select table_id, partition_id from lake.done_partition
where reset_at is not null and success_file and (%(table_id)s::bigint is null or table_id = %(table_id)s)
order by table_id, partition_id;

-- The file of a mark that was reset is gone; nothing if the partition was marked again meanwhile.
-- name: forget_success_file
select id from lake.forget_success_file_v1(%(table_id)s, %(partition_id)s, %(modified_at)s) as id;

-- Nobody is promised anything of a table that was dropped.
-- name: reset_marks_of_dropped
select lake.reset_marks_of_dropped_v1();
