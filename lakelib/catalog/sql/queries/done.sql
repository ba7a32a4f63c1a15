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

-- The table's head, which nobody moves until the transaction's end.
-- name: lock_head
select head_id from lake."table" where id = %(table_id)s and dropped_at is null for no key update;

-- A partition is done as of a snapshot. Marking it again keeps the time of the first mark.
-- name: mark_partition
insert into lake.done_partition as d
    (table_id, partition_id, snapshot_id, created_at, modified_at, success_file)
select %(table_id)s, %(partition_id)s, %(snapshot_id)s, moment, moment, %(success_file)s from clock_timestamp() as moment
on conflict (table_id, partition_id) do update
set snapshot_id = excluded.snapshot_id, reset_at = null, success_file = d.success_file or excluded.success_file,
    modified_at = greatest(excluded.modified_at, d.modified_at + interval '1 microsecond');

-- The marks of the partitions whose rows a commit has changed end with its publish; whether any had a file is told.
-- name: reset_marks
with touched as (
    select f.partition_id from lake.data_file f where f.commit_id = %(commit_id)s
    union
    select f.partition_id from lake.commit_removal r join lake.data_file f on f.id = r.file_id
    where r.commit_id = %(commit_id)s
), reset as (
    update lake.done_partition d set reset_at = clock_timestamp()
    from touched where d.table_id = %(table_id)s and d.partition_id = touched.partition_id and d.reset_at is null
    returning d.success_file
)
select coalesce(bool_or(success_file), false) as leaves_files from reset;

-- The marks that were reset and whose files may still be there: of one table, or of all.
-- name: list_outdated_files
select table_id, partition_id from lake.done_partition
where reset_at is not null and success_file and (%(table_id)s::bigint is null or table_id = %(table_id)s)
order by table_id, partition_id;

-- The file of a mark that was reset is gone; nothing if the partition was marked again meanwhile.
-- name: forget_success_file
update lake.done_partition set success_file = false
where table_id = %(table_id)s and partition_id = %(partition_id)s and modified_at = %(modified_at)s
  and reset_at is not null
returning partition_id;

-- Nobody is promised anything of a table that was dropped.
-- name: reset_marks_of_dropped
update lake.done_partition d set reset_at = clock_timestamp()
from lake."table" t where t.id = d.table_id and t.dropped_at is not null and d.reset_at is null;
