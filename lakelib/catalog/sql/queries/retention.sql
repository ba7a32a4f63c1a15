-- Whoever lets snapshots of the table expire, until the transaction's end: alone.
-- name: lock_past
select pg_advisory_xact_lock(hashtextextended('lake.expire ' || %(table_id)s::text, 0));

-- The snapshots that have not expired, oldest first, each with the time at which the next one took its place.
-- name: list_kept_snapshots
select s.id, s.committed_at, n.committed_at as superseded_at
from lake.snapshot s left join lake.snapshot n on n.table_id = s.table_id and n.id = s.id + 1
where s.table_id = %(table_id)s and s.expired_at is null
order by s.id;

-- Tags and leases, each with the snapshot that it holds.
-- name: list_holds
select 'tag' as kind, name, snapshot_id from lake.tag where table_id = %(table_id)s
union all
select 'lease', holder, snapshot_id from lake.lease
where table_id = %(table_id)s and expires_at > clock_timestamp()
order by 1, 2, 3;

-- Commits that may still be published.
-- name: list_open_commits
select c.id, c.state, c.base_snapshot_id, greatest(c.staged_at, c.decided_at) as since,
       lake.holds_past_v1(c) as holds_past
from lake.commit c
where table_id = %(table_id)s and state <> 'published' and state in ('staged', 'rejected')
order by since, id;

-- Holds that have run out.
-- name: drop_spent_leases
delete from lake.lease where table_id = %(table_id)s and expires_at <= clock_timestamp() returning id;

-- Some commits that nobody has published for long can no longer be published. Those that are being published are left.
-- name: expire_commits
update lake.commit
set state = 'expired', decided_at = clock_timestamp(),
    reason = case state when 'rejected' then 'rejected: ' || coalesce(reason, '') || '; expired' else 'it was staged for too long' end
where id in (
    select id from lake.commit
    where table_id = %(table_id)s and state <> 'published' and state in ('staged', 'rejected')
      and greatest(staged_at, decided_at) < %(before)s
    order by id limit %(limit)s
    for update skip locked)
returning id;

-- What expired commits would have read and taken out.
-- name: forget_dependencies
with expired as materialized (
    select id from lake.commit where table_id = %(table_id)s and state <> 'published' and state = 'expired'
), reads as (
    delete from lake.commit_read r using expired e where r.commit_id = e.id
)
delete from lake.commit_removal r using expired e where r.commit_id = e.id;

-- Some files of expired commits go to the queue; returns how many, and their size.
-- name: queue_files_of_commits
with own as materialized (
    select f.id from lake.commit c join lake.data_file f on f.commit_id = c.id
    where c.table_id = %(table_id)s and c.state <> 'published' and c.state = 'expired' and f.added_snapshot is null
    limit %(limit)s
), gone as (
    delete from lake.data_file f using own where f.id = own.id returning f.table_id, f.path, f.size_bytes
), queued as (
    insert into lake.deletion_queue (table_id, path, size_bytes, not_before)
    select table_id, path, size_bytes, clock_timestamp() + %(grace)s from gone
    on conflict (table_id, path) do nothing
)
select count(*) as files, coalesce(sum(size_bytes), 0)::bigint as size_bytes from gone;

-- What the files of commits that can no longer be published, or will not be, come to.
-- name: measure_files_of_commits
select count(*) as files, coalesce(sum(f.size_bytes), 0)::bigint as size_bytes
from lake.commit c join lake.data_file f on f.commit_id = c.id
where c.table_id = %(table_id)s and c.state <> 'published' and f.added_snapshot is null
  and (c.state = 'expired' or c.id = any(%(commit_ids)s));

-- Some snapshots, locked: whoever takes a lease or sets a tag on one is done, or waits.
-- name: lock_snapshots
select id from lake.snapshot where table_id = %(table_id)s and id = any(%(ids)s) and expired_at is null
order by id for update;

-- Those of the locked snapshots expire that nothing holds; returns them.
-- name: expire_snapshots
with gone as (
    update lake.snapshot s set expired_at = clock_timestamp()
    where s.table_id = %(table_id)s and s.id = any(%(ids)s) and s.expired_at is null
      and s.id < (select head_id from lake."table" where id = %(table_id)s)
      and not exists (select from lake.tag g where g.table_id = s.table_id and g.snapshot_id = s.id)
      and not exists (select from lake.lease l where l.table_id = s.table_id and l.snapshot_id = s.id)
      and s.id < coalesce((select min(c.base_snapshot_id) from lake.commit c
                           where c.table_id = %(table_id)s and c.state <> 'published'
                             and c.state in ('staged', 'rejected') and lake.holds_past_v1(c)),
                          9223372036854775807)
    returning s.id, s.commit_id
), reads as (
    delete from lake.commit_read r using gone g where r.commit_id = g.commit_id
)
select id from gone order by id;

-- Of the next files that were taken out of the table, those that no snapshot needs go to the queue. Returns how many
-- these are, their size, and where the next ones begin (null at the end).
-- name: queue_removed_files
with candidates as materialized (
    select f.id, f.added_snapshot, f.removed_snapshot from lake.data_file f
    where f.table_id = %(table_id)s and f.removed_snapshot is not null
      and (f.removed_snapshot, f.id) > (%(after_snapshot)s, %(after_id)s)
    order by f.removed_snapshot, f.id limit %(limit)s
), unneeded as materialized (
    select c.id from candidates c
    where not exists (select from lake.snapshot s
                      where s.table_id = %(table_id)s and s.expired_at is null
                        and s.id >= c.added_snapshot and s.id < c.removed_snapshot)
), forgotten as (
    delete from lake.commit_removal r using unneeded u where r.file_id = u.id
), gone as (
    delete from lake.data_file f using unneeded u where f.id = u.id returning f.table_id, f.path, f.size_bytes
), queued as (
    insert into lake.deletion_queue (table_id, path, size_bytes, not_before)
    select table_id, path, size_bytes, clock_timestamp() + %(grace)s from gone
    on conflict (table_id, path) do nothing
)
select (select count(*) from gone) as files, (select coalesce(sum(size_bytes), 0)::bigint from gone) as size_bytes,
       l.removed_snapshot as last_snapshot, l.id as last_id
from (select) as always
left join lateral (select removed_snapshot, id from candidates order by removed_snapshot desc, id desc limit 1) l on true;

-- The files that were taken out of a table.
-- name: list_removed_files
select added_snapshot, removed_snapshot, size_bytes from lake.data_file
where table_id = %(table_id)s and removed_snapshot is not null;
