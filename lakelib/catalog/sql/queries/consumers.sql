-- A consumer of a table that is there.
-- name: find_consumer
select c.* from lake.consumer c join lake."table" t on t.id = c.table_id and t.dropped_at is null
where c.table_id = %(table_id)s and c.name = %(name)s;

-- A consumer, made if it was not there; nothing where its table, or the snapshot after which it is to begin, is gone.
-- name: make_consumer
select * from lake.make_consumer_v1(%(table_id)s, %(name)s, %(start)s, %(told)s::interval, %(usual)s::interval);

-- The end of a consumer; its name, if it was there.
-- name: remove_consumer
select name from lake.remove_consumer_v1(%(table_id)s, %(name)s) as name;

-- Consumers move on, and commits become snapshots with that, all or nothing.
-- name: publish_advancing
select lake.publish_advancing_v1(%(commit_ids)s, %(publishing)s, %(advances)s) as answer;

-- Consumers of a table, or of all: what each has not read yet, compactions aside, and how many snapshots it holds.
-- name: list_consumers
select t.namespace || '.' || t.name as table_name, t.head_id, c.*, unread.snapshots, unread.rows, unread.since,
       held.snapshots as held, clock_timestamp() as now
from lake.consumer c
join lake."table" t on t.id = c.table_id and t.dropped_at is null
cross join lateral (
    select count(*) as snapshots, min(s.committed_at) as since,
           coalesce(sum(coalesce((s.summary ->> 'rows_written')::bigint, 0)
                        + coalesce((s.summary ->> 'deletes_written')::bigint, 0)), 0)::bigint as rows
    from lake.snapshot s where s.table_id = c.table_id and s.id > c.position and s.kind <> 'compact') unread
cross join lateral (
    select count(*) as snapshots
    from (select s.expired_at, lead(s.committed_at) over (order by s.id) as superseded_at
          from lake.snapshot s where s.table_id = c.table_id and s.id >= c.position) s
    where s.expired_at is null and s.superseded_at > clock_timestamp() - c.keep_for) held
where (%(table_id)s::bigint is null or c.table_id = %(table_id)s) and (%(name)s::text is null or c.name = %(name)s)
order by 1, c.name;

-- Where a consumer stands, and what the newest snapshot of another table that was made of changes says of these and
-- whether it was rolled back since, all as of one moment: what moves the one makes the other.
-- name: find_standing
select c.position, last.said, exists (
    select from lake.snapshot s
    where s.table_id = %(own_table_id)s and s.id > last.id and s.kind = 'rollback') as is_rolled_back
from (select) as one
left join lake.consumer c on c.table_id = %(table_id)s and c.name = %(name)s
left join lateral (
    select s.id, s.properties ->> 'changes' as said from lake.snapshot s
    where s.table_id = %(own_table_id)s and s.properties ? 'changes' order by s.id desc limit 1) last on true;
