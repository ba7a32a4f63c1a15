-- The snapshots that have not expired, oldest first, each with the time at which the next one took its place.
-- name: list_kept_snapshots
select s.id, s.committed_at, n.committed_at as superseded_at
from lake.snapshot s left join lake.snapshot n on n.table_id = s.table_id and n.id = s.id + 1
where s.table_id = %(table_id)s and s.expired_at is null
order by s.id;

-- Tags and leases, each with the snapshot that it holds, and since when and until when it does.
-- name: list_holds
select 'tag' as kind, name, snapshot_id, created_at as since, until, family is not null as has_end
from lake.tag where table_id = %(table_id)s and name not in (select lake.ended_tags_v1(%(table_id)s))
union all
select 'lease', holder, snapshot_id, null, expires_at, true from lake.lease
where table_id = %(table_id)s and expires_at > clock_timestamp() and coalesce(last_snapshot_id, snapshot_id) = snapshot_id
order by 1, 2, 3;

-- What holds more than one snapshot: leases on a range, and consumers, who hold those from their position on that were
-- superseded after a moment.
-- name: list_reaches
select 'lease' as kind, holder as name, snapshot_id, null::timestamptz as since, expires_at as until,
       last_snapshot_id as last_id, null::timestamptz as superseded_after
from lake.lease where table_id = %(table_id)s and expires_at > clock_timestamp() and last_snapshot_id > snapshot_id
union all
select 'consumer', name, position, coalesce(advanced_at, created_at), null, null, clock_timestamp() - keep_for
from lake.consumer where table_id = %(table_id)s
order by 1 desc, 2, 3;

-- The tags whose time is over.
-- name: list_ended_tags
select lake.ended_tags_v1(%(table_id)s) as name order by 1;

-- They go; returns them.
-- name: expire_tags
select name from lake.expire_tags_v1(%(table_id)s) as name order by 1;

-- Commits that may still be published.
-- name: list_open_commits
select c.id, c.state, c.base_snapshot_id, c.restores, greatest(c.staged_at, c.decided_at) as since,
       lake.holds_past_v1(c) as holds_past
from lake.commit c
where table_id = %(table_id)s and state <> 'published' and state in ('staged', 'rejected')
order by since, id;

-- Holds that have run out.
-- name: list_spent_leases
select id from lake.lease where table_id = %(table_id)s and expires_at <= clock_timestamp();

-- They go; returns them.
-- name: drop_spent_leases
select id from lake.drop_spent_leases_v1(%(table_id)s) as id;

-- Some commits that nobody has published for long can no longer be published. Those that are being published are left.
-- name: expire_commits
select id from lake.expire_commits_v1(%(table_id)s, %(before)s, %(limit)s::integer) as id;

-- What expired commits would have read and taken out.
-- name: forget_dependencies
select lake.forget_dependencies_v1(%(table_id)s);

-- Some files of expired commits go to the queue, unless others have them still; returns how many rows of files are gone,
-- how many files are in the queue for that, and their size.
-- name: queue_files_of_commits
select * from lake.queue_files_of_commits_v2(%(table_id)s, %(grace)s, %(limit)s::integer);

-- Verdicts on rows that are gone show none of them.
-- name: forget_samples
select lake.forget_samples_v1(%(table_id)s);

-- What the files of commits that can no longer be published, or will not be, come to: those that are in no snapshot.
-- name: measure_files_of_commits
select count(*) as files, coalesce(sum(d.size_bytes), 0)::bigint as size_bytes
from (select distinct f.path, f.size_bytes
      from lake.commit c join lake.data_file f on f.commit_id = c.id
      where c.table_id = %(table_id)s and c.state <> 'published' and f.added_snapshot is null
        and (c.state = 'expired' or c.id = any(%(commit_ids)s))) d
where not exists (select from lake.data_file o join lake.commit c on c.id = o.commit_id
                  where o.table_id = %(table_id)s and o.path = d.path
                    and c.state <> 'expired' and c.id <> all(%(commit_ids)s));

-- Those of the locked snapshots expire that nothing holds; returns them.
-- name: expire_snapshots
select id from lake.expire_snapshots_v1(%(table_id)s, %(ids)s::bigint[]) as id order by id;

-- Of the next files that were taken out of the table, those that no snapshot needs go to the queue. Returns how many
-- these are, their size, and where the next ones begin (null at the end).
-- name: queue_removed_files
select * from lake.queue_removed_files_v1(%(table_id)s, %(grace)s, %(after_snapshot)s, %(after_id)s, %(limit)s::integer);

-- The files that were taken out of a table, and are not named again but by commits that can no longer be published, or
-- will not be: from which snapshots on, and until before which.
-- name: list_removed_files
select array_agg(f.added_snapshot) as added_snapshots, array_agg(f.removed_snapshot) as removed_snapshots,
       max(f.size_bytes) as size_bytes
from lake.data_file f
where f.table_id = %(table_id)s and f.removed_snapshot is not null
  and not exists (select from lake.data_file o join lake.commit c on c.id = o.commit_id
                  where o.table_id = f.table_id and o.path = f.path and o.removed_snapshot is null
                    and c.state <> 'expired' and c.id <> all(%(commit_ids)s))
group by f.path;
