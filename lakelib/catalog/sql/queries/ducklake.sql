-- The masks of the snapshot of a table that was shown last.
-- name: list_shown_masks
select id, file_id, made_of from lake.shown_mask where table_id = %(table_id)s and until_snapshot is null;

-- The snapshots behind the last one that is shown, the oldest first; without any the head alone.
-- name: list_unshown
select s.id from lake.snapshot s
where s.table_id = %(table_id)s and s.expired_at is null
  and s.id > coalesce((select max(h.snapshot_id) from lake.shown h where h.table_id = %(table_id)s),
                      (select t.head_id - 1 from lake."table" t where t.id = %(table_id)s))
order by s.id;

-- A snapshot is shown from now on, with all its masks.
-- name: show
select lake.show_v1(%(table_id)s, %(snapshot_id)s, %(kept)s::bigint[], %(masks)s) as is_shown;

-- What expired snapshots have shown is forgotten.
-- name: forget_shown
select lake.forget_shown_v1(%(table_id)s, %(grace)s);

-- All tables, with the newest snapshot of each that is shown.
-- name: list_shown_tables
select t.namespace || '.' || t.name as name, t.head_id, cardinality(t.primary_key) > 0 as has_key,
       coalesce(t.options ->> 'ducklake', '') as mode,
       (select max(s.snapshot_id) from lake.ducklake_state s where s.table_id = t.id) as snapshot_id
from lake."table" t where t.dropped_at is null order by t.namespace, t.name;

-- The newest snapshot of a table that is shown.
-- name: find_newest_shown
select max(snapshot_id) as snapshot_id from lake.shown where table_id = %(table_id)s;
