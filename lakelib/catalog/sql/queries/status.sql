-- All tables, each with its head, and what the newest run about a partition has said, if it is among the newest thousand
-- snapshots.
-- name: list_status_tables
select t.*, c.columns::text as columns, clock_timestamp() as loaded_at, h.committed_at as head_committed_at,
       r.suite_name, r.suite_version, r.suite_hash, o.properties as run_properties
from lake."table" t
join lake.table_schema c on c.table_id = t.id and c.id = t.schema_id
left join lake.gate_requirement r on r.table_id = t.id and r.released_at is null
left join lake.snapshot h on h.table_id = t.id and h.id = t.head_id
left join lateral (select s.properties from lake.snapshot s
                   where s.table_id = t.id and s.id > t.head_id - 1000 and s.properties ? 'partition'
                   order by s.id desc limit 1) o on true
where t.dropped_at is null
order by t.namespace, t.name;

-- The newest verdicts on what was published in tables, among their newest thousand snapshots.
-- name: list_last_verdicts
select t.id as table_id, v.gate, v.outcome, v.snapshot_id
from lake."table" t
cross join lateral (select v.gate, v.outcome, s.id as snapshot_id
                    from lake.snapshot s join lake.verdict v on v.commit_id = s.commit_id
                    where s.table_id = t.id and s.id > t.head_id - 1000
                    order by s.id desc, v.id desc limit 1) v
where t.id = any(%(table_ids)s);

-- What tables hold now, and by the part of their partitions' keys that stands at a place, which snapshot was the last that
-- changed rows there. A partition is due for compaction where it has so many runs, or later ones weigh so much of the
-- oldest; null is never.
-- name: sum_tables
with asked as (
    select * from unnest(%(table_ids)s::bigint[], %(places)s::integer[], %(runs)s::bigint[], %(percents)s::bigint[])
             as a (table_id, place, due_runs, due_percent)
), run as (
    select f.table_id, f.partition_id, f.sequence, count(*) as files, sum(f.row_count) as stored_rows,
           sum(f.size_bytes) as size_bytes
    from lake.data_file f
    where f.table_id = any(%(table_ids)s) and f.added_snapshot is not null and f.removed_snapshot is null
    group by f.table_id, f.partition_id, f.sequence
), held as (
    select r.table_id, r.partition_id, max(r.sequence) as changed, sum(r.files) as files, sum(r.stored_rows) as stored_rows,
           sum(r.size_bytes) as size_bytes, count(*) as runs,
           (array_agg(r.size_bytes order by r.sequence))[1] as oldest_bytes
    from run r group by r.table_id, r.partition_id
), emptied as (
    select c.table_id, c.partition_id, max(c.changed) as changed
    from (select f.table_id, f.partition_id, f.removed_snapshot as changed
          from lake.data_file f join lake.snapshot s on s.table_id = f.table_id and s.id = f.removed_snapshot
          where f.table_id = any(%(table_ids)s) and f.removed_snapshot is not null and s.kind <> 'compact'
          union all
          select f.table_id, f.partition_id, f.added_snapshot
          from lake.snapshot s join lake.data_file f on f.table_id = s.table_id and f.added_snapshot = s.id
          where s.table_id = any(%(table_ids)s) and s.kind = 'rollback') c
    group by c.table_id, c.partition_id
)
select a.table_id, coalesce(sum(h.files), 0)::bigint as files, coalesce(sum(h.stored_rows), 0)::bigint as stored_rows,
       coalesce(sum(h.size_bytes), 0)::bigint as size_bytes, count(h.partition_id) as partitions,
       coalesce(max(h.runs), 0) as most_runs,
       count(*) filter (where h.runs >= a.due_runs
                           or h.runs > 1 and (h.size_bytes - h.oldest_bytes) * 100 >= a.due_percent * h.oldest_bytes)
           as partitions_due,
       array_agg(p.key[a.place]) as parts, array_agg(greatest(h.changed, e.changed)) as changed
from held h full join emptied e on e.partition_id = h.partition_id
join lake.partition p on p.id = coalesce(h.partition_id, e.partition_id)
join asked a on a.table_id = p.table_id
group by a.table_id;

-- What runs about partitions have published in tables, in the order of publishing.
-- name: list_runs_of_tables
select s.table_id, array_agg(s.id order by s.id) as snapshots,
       array_agg(s.properties ->> 'partition' order by s.id) as keys,
       array_agg(s.committed_at order by s.id) as moments
from lake.snapshot s where s.table_id = any(%(table_ids)s) and s.properties ? 'partition'
group by s.table_id;

-- At which snapshots of other tables these runs have read them. What was made on top of staged commits, which became
-- visible in the same instant, has seen them: up to what others have published in between.
-- name: list_reads_of_tables
select s.table_id, substr(r.key, 7) as input, array_agg(s.id) as snapshots,
       array_agg(coalesce(own.seen, r.value::bigint)) as seen
from lake.snapshot s cross join lateral jsonb_each_text(s.properties) as r
left join lateral (
    select max(i.id) as seen
    from lake."table" t join lake.snapshot i on i.table_id = t.id
    where s.properties ? ('reads_staged.' || substr(r.key, 7))
      and t.namespace || '.' || t.name = substr(r.key, 7) and t.dropped_at is null
      and i.id > r.value::bigint and i.committed_at = s.committed_at
      and not exists (select from lake.snapshot other
                      where other.table_id = t.id and other.id > r.value::bigint and other.id < i.id
                        and other.committed_at <> s.committed_at and other.kind not in ('compact', 'evolve'))) own on true
where s.table_id = any(%(table_ids)s) and s.properties ? 'partition' and starts_with(r.key, 'reads.')
group by s.table_id, r.key;

-- The commits of all tables that may still be published, the oldest first, with their newest verdicts, and whether a person
-- has decided against one.
-- name: list_waiting
select c.id, t.namespace || '.' || t.name as table_name, c.kind, c.state, c.staged_at, c.reason, c.application, c.version,
       c.properties ->> 'partition' as partition, c.summary, v.gate, v.outcome, d.discarded_by, d.reason as discard_reason,
       d.discarded_at
from lake.commit c
join lake."table" t on t.id = c.table_id and t.dropped_at is null
left join lake.discard d on d.commit_id = c.id
left join lateral (select v.gate, v.outcome from lake.verdict v where v.commit_id = c.id order by v.id desc limit 1) v
    on true
where c.state <> 'published' and c.state in ('staged', 'rejected') and c.kind <> 'compact'
order by c.staged_at, c.id;

-- Of each table, how many snapshots can be read, and what keeps those back that rules would let go: the kind of hold, how
-- many there are of it, one of them, and how many snapshots they hold.
-- name: list_held_back
with asked as (
    select * from unnest(%(table_ids)s::bigint[], %(keep_last)s::bigint[], %(older_than)s::interval[])
             as a (table_id, keep_last, older_than)
), kept as (
    select s.table_id, s.id, row_number() over (partition by s.table_id order by s.id desc) as place
    from lake.snapshot s where s.table_id = any(%(table_ids)s) and s.expired_at is null
), let_go as (
    select k.table_id, k.id, n.committed_at as superseded_at
    from kept k join asked a on a.table_id = k.table_id
    join lake.snapshot n on n.table_id = k.table_id and n.id = k.id + 1
    where k.place > a.keep_last and n.committed_at < clock_timestamp() - a.older_than
), hold as (
    select g.table_id, 'tag' as kind, g.name, g.snapshot_id as first_id, g.snapshot_id as last_id,
           '-infinity'::timestamptz as superseded_after
    from lake.tag g where g.table_id = any(%(table_ids)s)
    union all
    select l.table_id, 'lease', l.holder, l.snapshot_id, coalesce(l.last_snapshot_id, l.snapshot_id), '-infinity'
    from lake.lease l where l.table_id = any(%(table_ids)s) and l.expires_at > clock_timestamp()
    union all
    select o.table_id, 'consumer', o.name, o.position, 9223372036854775807, clock_timestamp() - o.keep_for
    from lake.consumer o where o.table_id = any(%(table_ids)s)
    union all
    select c.table_id, c.state || ' commit', c.id::text, c.base_snapshot_id, 9223372036854775807, '-infinity'
    from lake.commit c
    where c.table_id = any(%(table_ids)s) and c.state <> 'published' and c.state in ('staged', 'rejected')
      and lake.holds_past_v1(c)
    union all
    select c.table_id, c.state || ' rollback', c.id::text, c.restores, c.restores, '-infinity'
    from lake.commit c
    where c.table_id = any(%(table_ids)s) and c.state <> 'published' and c.state in ('staged', 'rejected')
      and c.restores is not null
)
select h.table_id, h.kind, count(distinct h.name) as holds, min(h.name) as example, count(distinct g.id) as snapshots,
       min(g.id) as first_id
from hold h join let_go g on g.table_id = h.table_id and g.id between h.first_id and h.last_id
     and g.superseded_at > h.superseded_after
group by h.table_id, h.kind
order by h.table_id, h.kind desc;

-- The newest commit that each run about a partition of a table has published, with its newest verdict.
-- name: list_published_partitions
select distinct on (s.properties ->> 'partition') s.properties ->> 'partition' as partition, s.id as snapshot_id,
       s.commit_id, s.committed_at, s.summary, s.properties, c.application, c.version, c.approved_by, c.approval_reason,
       v.gate, v.outcome
from lake.snapshot s
join lake.commit c on c.id = s.commit_id
left join lateral (select v.gate, v.outcome from lake.verdict v where v.commit_id = s.commit_id order by v.id desc limit 1) v
    on true
where s.table_id = %(table_id)s and s.properties ? 'partition'
order by s.properties ->> 'partition', s.id desc;

-- The newest verdicts of a table, the newest first: with what each check has found, and no rows.
-- name: list_check_history
select v.commit_id, v.gate, v.outcome, v.judged_at, c.state, c.snapshot_id, c.properties ->> 'partition' as partition,
       (select jsonb_agg(jsonb_build_object('name', e.told ->> 'name', 'status', e.told ->> 'status',
                                            'severity', e.told ->> 'severity', 'row_count', e.told -> 'row_count',
                                            'unexpected_count', e.told -> 'unexpected_count'))
        from jsonb_array_elements(v.evidence -> 'checks') as e (told)) as checks
from lake.commit c
join lateral (select * from lake.verdict v where v.commit_id = c.id order by v.id desc limit 1) v on true
where c.table_id = %(table_id)s
order by v.judged_at desc
limit %(limit)s;

-- A commit of a table, or all commits about a partition, the newest first.
-- name: list_commits_about
select c.id, c.kind, c.state, c.staged_at, c.decided_at, c.reason, c.snapshot_id, c.application, c.version, c.approved_by,
       c.approval_reason, c.summary, c.properties, v.gate, v.outcome, d.discarded_by, d.reason as discard_reason,
       d.discarded_at
from lake.commit c
left join lake.discard d on d.commit_id = c.id
left join lateral (select v.gate, v.outcome from lake.verdict v where v.commit_id = c.id order by v.id desc limit 1) v
    on true
where c.table_id = %(table_id)s and (c.id = %(commit_id)s or c.properties ->> 'partition' = %(partition)s)
order by c.staged_at desc, c.id
limit %(limit)s;
