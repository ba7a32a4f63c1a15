-- The tables of all namespaces or of one, each with its head.
-- name: list_table_heads
select t.*, s.columns::text as columns, clock_timestamp() as loaded_at, h.committed_at as head_committed_at,
       r.suite_name, r.suite_version, r.suite_hash
from lake."table" t
join lake.table_schema s on s.table_id = t.id and s.id = t.schema_id
left join lake.gate_requirement r on r.table_id = t.id and r.released_at is null
left join lake.snapshot h on h.table_id = t.id and h.id = t.head_id
where t.dropped_at is null and (%(namespace)s::text is null or t.namespace = %(namespace)s)
order by t.namespace, t.name;

-- What a snapshot of a table holds.
-- name: sum_files
select count(*) as files, coalesce(sum(f.row_count), 0)::bigint as stored_rows,
       coalesce(sum(f.size_bytes), 0)::bigint as size_bytes, count(distinct f.partition_id) as partitions
from lake.data_file f
where f.table_id = %(table_id)s
  and f.added_snapshot <= %(snapshot_id)s and coalesce(f.removed_snapshot, 9223372036854775807) > %(snapshot_id)s;

-- Commits of all tables or of one, in some states, the newest first, with the outcome of their newest verdict.
-- name: list_commits
select c.*, t.namespace || '.' || t.name as table_name, t.head_id, v.gate, v.outcome
from lake.commit c
join lake."table" t on t.id = c.table_id
left join lateral (select v.gate, v.outcome from lake.verdict v where v.commit_id = c.id order by v.id desc limit 1) v
    on true
where (%(table_id)s::bigint is null or c.table_id = %(table_id)s) and t.dropped_at is null and c.state = any(%(states)s)
order by c.staged_at desc, c.id
limit %(limit)s;
