-- One snapshot by id.
-- name: load_snapshot
select * from lake.snapshot where table_id = %(table_id)s and id = %(id)s;

-- The newest snapshot at a moment.
-- name: find_snapshot_at
select * from lake.snapshot where table_id = %(table_id)s and committed_at <= %(moment)s
order by committed_at desc limit 1;

-- The oldest snapshot.
-- name: find_oldest_snapshot
select * from lake.snapshot where table_id = %(table_id)s order by id limit 1;

-- The snapshot that a tag pins.
-- name: find_tagged_snapshot
select s.* from lake.tag g join lake.snapshot s on s.table_id = g.table_id and s.id = g.snapshot_id
where g.table_id = %(table_id)s and g.name = %(name)s;

-- All snapshots, newest first.
-- name: list_snapshots
select * from lake.snapshot where table_id = %(table_id)s order by id desc;

-- A reader's hold on a snapshot; nothing if the snapshot is gone.
-- name: take_lease
insert into lake.lease (id, table_id, snapshot_id, holder, expires_at)
select %(id)s, table_id, id, %(holder)s, clock_timestamp() + %(duration)s
from lake.snapshot where table_id = %(table_id)s and id = %(snapshot_id)s
on conflict (id) do update set expires_at = excluded.expires_at
returning id;

-- A longer hold; nothing if it had been given up.
-- name: renew_lease
update lake.lease set expires_at = clock_timestamp() + %(duration)s where id = %(id)s returning id;

-- The end of a hold.
-- name: release_lease
delete from lake.lease where id = %(id)s;
