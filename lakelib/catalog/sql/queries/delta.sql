-- What snapshots have done, from one to another, expired or not: their commits' applications, and the newest verdict of
-- each gate.
-- name: list_told_snapshots
select s.*, c.application, c.version as application_version,
       (select jsonb_object_agg(v.gate, v.outcome) from (
            select distinct on (v.gate) v.gate, v.outcome from lake.verdict v
            where v.commit_id = s.commit_id order by v.gate, v.id desc) v) as verdicts
from lake.snapshot s join lake.commit c on c.id = s.commit_id
where s.table_id = %(table_id)s and s.id between %(first_id)s and %(last_id)s order by s.id;

-- From which snapshot on none has expired.
-- name: find_first_kept
select coalesce(max(id) filter (where expired_at is not null), 0) + 1 as id
from lake.snapshot where table_id = %(table_id)s;

-- The versions of the schema that the files of a snapshot were written with.
-- name: list_stored_schemas
select distinct f.schema_id as id from lake.data_file f
where f.table_id = %(table_id)s
  and f.added_snapshot <= %(snapshot_id)s and coalesce(f.removed_snapshot, 9223372036854775807) > %(snapshot_id)s;

-- How far each application had come at a snapshot.
-- name: list_applications
select distinct on (c.application) c.application, c.version, s.committed_at
from lake.commit c join lake.snapshot s on s.commit_id = c.id
where c.table_id = %(table_id)s and c.state = 'published' and c.application is not null and s.id <= %(snapshot_id)s
order by c.application, c.version desc;

-- When snapshots were committed.
-- name: list_moments
select id, committed_at from lake.snapshot where table_id = %(table_id)s and id = any(%(ids)s);
