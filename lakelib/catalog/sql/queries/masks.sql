-- Of some partitions, as a snapshot shows them: the last snapshot that has touched them; as of which one masks are kept, up
-- to that and at all; and whether others than compactions took files out, or brought some back, between the two.
-- name: find_mask_states
select s.partition_id, s.touched_at, s.known_at, s.newest_at,
       s.known_at < s.touched_at and (
           exists (select from lake.data_file f
                   join lake.snapshot n on n.table_id = f.table_id and n.id = f.removed_snapshot
                   where f.table_id = %(table_id)s and f.partition_id = s.partition_id
                     and coalesce(f.removed_snapshot, 9223372036854775807) > s.known_at
                     and coalesce(f.removed_snapshot, 9223372036854775807) <= s.touched_at and n.kind <> 'compact')
           or exists (select from lake.data_file f
                      join lake.snapshot n on n.table_id = f.table_id and n.id = f.added_snapshot
                      where f.partition_id = s.partition_id and f.added_snapshot > s.known_at
                        and f.added_snapshot <= s.touched_at and n.kind = 'rollback')) as is_reset
from (
    select w.id as partition_id,
           greatest(
               (select max(f.added_snapshot) from lake.data_file f
                where f.partition_id = w.id and f.added_snapshot <= %(snapshot_id)s),
               (select f.removed_snapshot from lake.data_file f
                where f.table_id = %(table_id)s and f.partition_id = w.id
                  and coalesce(f.removed_snapshot, 9223372036854775807) <= %(snapshot_id)s
                order by coalesce(f.removed_snapshot, 9223372036854775807) desc limit 1)) as touched_at,
           (select max(m.snapshot_id) from lake.masked m
            where m.partition_id = w.id and m.snapshot_id <= %(snapshot_id)s) as known_at,
           (select max(m.snapshot_id) from lake.masked m where m.partition_id = w.id) as newest_at
    from unnest(%(partition_ids)s::bigint[]) as w (id)) s
order by s.partition_id;

-- The masks of the files of a snapshot, in some partitions, each as of a snapshot of its own.
-- name: load_masks
select m.file_id, m.row_count, m.size_bytes, m.vector, m.path
from unnest(%(partition_ids)s::bigint[], %(known_at)s::bigint[]) as w (partition_id, known_at)
join lake.data_file f on f.table_id = %(table_id)s and f.partition_id = w.partition_id
    and f.added_snapshot <= %(snapshot_id)s and coalesce(f.removed_snapshot, 9223372036854775807) > %(snapshot_id)s
join lake.mask m on m.file_id = f.id and m.from_snapshot <= w.known_at
    and coalesce(m.until_snapshot, 9223372036854775807) > w.known_at
order by m.file_id;

-- The masks of partitions' files; returns the partitions whose masks are kept.
-- name: keep_masks
select partition_id from lake.keep_masks_v1(%(table_id)s, %(wanted)s) as partition_id;

-- Which files of masks, of these, are named.
-- name: find_named_masks
select w.path from unnest(%(paths)s::text[]) as w (path)
where exists (select from lake.mask m where m.table_id = %(table_id)s and m.path = w.path)
   or exists (select from lake.shown_mask m where m.table_id = %(table_id)s and m.path = w.path)
   or exists (select from lake.deletion_queue q where q.table_id = %(table_id)s and q.path = w.path);

-- Masks that no snapshot needs go; their files enter the queue.
-- name: forget_masks
select lake.forget_masks_v1(%(table_id)s, %(grace)s);
