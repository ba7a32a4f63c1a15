-- One snapshot by id, expired or not.
-- name: load_snapshot
select * from lake.snapshot where table_id = %(table_id)s and id = %(id)s;

-- The snapshot that was the newest at a moment, expired or not: the answer stays the same. Nothing for a moment to come.
-- name: find_snapshot_at
select * from lake.find_moment_v1(%(table_id)s, %(moment)s, %(patience_ms)s);

-- Whether a moment is still to come.
-- name: is_to_come
select %(moment)s > clock_timestamp() as is_to_come;

-- The oldest snapshot that has not expired.
-- name: find_oldest_snapshot
select * from lake.snapshot where table_id = %(table_id)s and expired_at is null order by id limit 1;

-- The latest moment of any snapshot that has not expired.
-- name: find_latest_moment
select max(committed_at) as moment from lake.snapshot where table_id = %(table_id)s and expired_at is null;

-- The snapshot that a tag pins.
-- name: find_tagged_snapshot
select s.* from lake.tag g join lake.snapshot s on s.table_id = g.table_id and s.id = g.snapshot_id
where g.table_id = %(table_id)s and g.name = %(name)s;

-- All snapshots that have not expired, newest first.
-- name: list_snapshots
select * from lake.snapshot where table_id = %(table_id)s and expired_at is null order by id desc;

-- The snapshots from one to another, expired or not.
-- name: list_steps
select id, kind, expired_at is null as is_kept from lake.snapshot
where table_id = %(table_id)s and id between %(first_id)s and %(last_id)s order by id;

-- The first snapshots from one to another, expired or not: how many rows each brought, in which columns.
-- name: list_ahead
select id, kind, schema_id,
  coalesce((summary ->> 'rows_written')::bigint, 0) + coalesce((summary ->> 'deletes_written')::bigint, 0) as row_count
from lake.snapshot where table_id = %(table_id)s and id between %(first_id)s and %(last_id)s order by id
limit %(most)s;

-- The newest snapshot up to one that has changed rows, expired or not.
-- name: find_loud_snapshot
select id from lake.snapshot
where table_id = %(table_id)s and id <= %(last_id)s and kind not in ('compact', 'evolve') order by id desc limit 1;

-- How long ago a snapshot was committed, expired or not.
-- name: find_age
select greatest(clock_timestamp() - committed_at, interval '0') as age from lake.snapshot
where table_id = %(table_id)s and id = %(id)s;

-- A reader's hold on a snapshot; nothing if the snapshot is gone. The row's lock makes it wait for an expiry under way,
-- and sees what that has done.
-- name: take_lease
select id from lake.take_lease_v1(%(id)s, %(table_id)s, %(snapshot_id)s, %(holder)s, %(duration)s) as id;

-- Holds on several snapshots, each as above: the ids of those that are held.
-- name: take_leases
select held as id
from unnest(%(ids)s::uuid[], %(table_ids)s::bigint[], %(snapshot_ids)s::bigint[]) as w (id, table_id, snapshot_id)
cross join lateral lake.take_lease_v1(w.id, w.table_id, w.snapshot_id, %(holder)s, %(duration)s) as held;

-- A reader's hold on all snapshots of a range; the first of them that is gone, and then nothing is held.
-- name: take_range
select lake.take_range_v1(%(id)s, %(table_id)s, %(first_id)s, %(last_id)s, %(holder)s, %(duration)s) as missing;

-- A longer hold; nothing if it had been given up.
-- name: renew_lease
select id from lake.renew_lease_v1(%(id)s, %(duration)s) as id;

-- The end of a hold.
-- name: release_lease
select lake.release_lease_v1(%(id)s);

-- The end of several holds.
-- name: release_leases
select lake.release_lease_v1(w.id) from unnest(%(ids)s::uuid[]) as w (id);

-- A tag, as it is then; nothing if the name is on another snapshot or the snapshot is gone. Waits for an expiry under way,
-- as a lease does.
-- name: set_tag
select * from lake.set_tag_v2(%(table_id)s, %(name)s, %(snapshot_id)s, %(family)s, %(keep)s, %(keep_last)s::integer);

-- A tag by name.
-- name: find_tag
select * from lake.tag where table_id = %(table_id)s and name = %(name)s;

-- All tags of a table, those of its newest snapshots first.
-- name: list_tags
select * from lake.tag where table_id = %(table_id)s
order by snapshot_id desc, created_at desc, name;

-- The end of a tag.
-- name: delete_tag
select name from lake.delete_tag_v1(%(table_id)s, %(name)s) as name;
