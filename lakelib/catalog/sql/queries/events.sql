-- Somebody listens to a table, for so long unless it is said again.
-- name: listen
select lake.listen_v1(%(id)s, %(table_id)s, %(duration)s);

-- Tells those who listen what was published.
-- name: tell
select lake.tell_v1(%(table_ids)s::bigint[], %(snapshot_ids)s::bigint[]);

-- The snapshots of a table after one, expired or not, oldest first; none where the table was dropped.
-- name: list_snapshots_after
select s.* from lake.snapshot s join lake."table" t on t.id = s.table_id and t.dropped_at is null
where s.table_id = %(table_id)s and s.id > %(after)s order by s.id limit %(limit)s;
