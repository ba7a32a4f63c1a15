-- Holds that have run out.
create or replace function lake.drop_spent_leases_v1(own_table bigint) returns setof uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    delete from lake.lease l where l.table_id = own_table and l.expires_at <= clock_timestamp() returning l.id;
end $$;

-- Some commits that nobody has published for long can no longer be published. Those that are being published are left.
create or replace function lake.expire_commits_v1(own_table bigint, before timestamptz, most integer) returns setof uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    update lake.commit c
    set state = 'expired', decided_at = clock_timestamp(),
        reason = case c.state when 'rejected' then 'rejected: ' || coalesce(c.reason, '') || '; expired'
                              else 'it was staged for too long' end
    where c.id in (
        select o.id from lake.commit o
        where o.table_id = own_table and o.state <> 'published' and o.state in ('staged', 'rejected')
          and greatest(o.staged_at, o.decided_at) < before
        order by o.id limit most
        for update skip locked)
    returning c.id;
end $$;

-- Those of the snapshots expire that nothing holds; returns them. Locks first and looks afterwards, in statements of their
-- own: each sees what was committed while the one before it waited. Whoever takes a lease or sets a tag on one of them is
-- done, or waits for this transaction's end, and sees what it did.
create or replace function lake.expire_snapshots_v1(own_table bigint, ids bigint[]) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform lake.check_right_v1('maintain');
    perform pg_advisory_xact_lock(hashtextextended('lake.expire ' || own_table, 0));
    perform from lake.snapshot s where s.table_id = own_table and s.id = any(ids) and s.expired_at is null
    order by s.id for update;
    perform lake.drop_spent_leases_v1(own_table);
    return query
    with gone as (
        update lake.snapshot s set expired_at = clock_timestamp()
        where s.table_id = own_table and s.id = any(ids) and s.expired_at is null
          and s.id < (select t.head_id from lake."table" t where t.id = own_table)
          and not exists (select from lake.tag g where g.table_id = s.table_id and g.snapshot_id = s.id)
          and not exists (select from lake.lease l where l.table_id = s.table_id
                          and s.id between l.snapshot_id and coalesce(l.last_snapshot_id, l.snapshot_id))
          and not exists (select from lake.consumer c
                          where c.table_id = s.table_id and c.position <= s.id
                            and (select n.committed_at from lake.snapshot n
                                 where n.table_id = s.table_id and n.id = s.id + 1) > clock_timestamp() - c.keep_for)
          and not exists (select from lake.commit c
                          where c.table_id = own_table and c.state <> 'published'
                            and c.state in ('staged', 'rejected') and c.restores = s.id)
          and s.id < coalesce((select min(c.base_snapshot_id) from lake.commit c
                               where c.table_id = own_table and c.state <> 'published'
                                 and c.state in ('staged', 'rejected') and lake.holds_past_v1(c)),
                              9223372036854775807)
        returning s.id, s.commit_id
    ), reads as (
        delete from lake.commit_read r using gone g where r.commit_id = g.commit_id
    )
    select g.id from gone g order by g.id;
end $$;

-- What expired commits would have read and taken out.
create or replace function lake.forget_dependencies_v1(own_table bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    with expired as materialized (
        select c.id from lake.commit c
        where c.table_id = own_table and c.state <> 'published' and c.state = 'expired'
    ), reads as (
        delete from lake.commit_read r using expired e where r.commit_id = e.id
    )
    delete from lake.commit_removal r using expired e where r.commit_id = e.id;
end $$;

-- Some files of expired commits go to the queue, unless others have them still; returns how many rows of files are gone,
-- how many files are in the queue for that, and their size. Of two that forget one file at once the second sees the first.
create or replace function lake.queue_files_of_commits_v2(own_table bigint, grace interval, most integer)
returns table (gone bigint, files bigint, size_bytes bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('lake.queue ' || own_table, 0));
    return query
    with own as materialized (
        select f.id from lake.commit c join lake.data_file f on f.commit_id = c.id
        where c.table_id = own_table and c.state <> 'published' and c.state = 'expired' and f.added_snapshot is null
        limit most
    ), gone as (
        delete from lake.data_file f using own where f.id = own.id returning f.table_id, f.path, f.size_bytes
    ), queued as (
        insert into lake.deletion_queue as q (table_id, path, size_bytes, not_before)
        select g.table_id, g.path, g.size_bytes, clock_timestamp() + greatest(grace, interval '0') from gone g
        on conflict do nothing
        returning q.size_bytes
    )
    select (select count(*) from gone), count(*), coalesce(sum(q.size_bytes), 0)::bigint from queued q;
end $$;

-- As clients of the version before count them.
create or replace function lake.queue_files_of_commits_v1(own_table bigint, grace interval, most integer)
returns table (files bigint, size_bytes bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query select q.gone, q.size_bytes from lake.queue_files_of_commits_v2(own_table, grace, most) q;
end $$;

-- Of the next files that were taken out of the table, those that no snapshot needs go to the queue, unless they were named
-- again and are needed for that. Returns how many are in the queue, their size, and where the next ones begin (null at the
-- end).
create or replace function lake.queue_removed_files_v1(own_table bigint, grace interval, after_snapshot bigint, after_id bigint,
                                            most integer)
returns table (files bigint, size_bytes bigint, last_snapshot bigint, last_id bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('lake.queue ' || own_table, 0));
    perform set_config('lake.grace', greatest(grace, interval '0')::text, true);
    return query
    with candidates as materialized (
        select f.id, f.added_snapshot, f.removed_snapshot from lake.data_file f
        where f.table_id = own_table and f.removed_snapshot is not null
          and (f.removed_snapshot, f.id) > (after_snapshot, after_id)
        order by f.removed_snapshot, f.id limit most
    ), unneeded as materialized (
        select c.id from candidates c
        where not exists (select from lake.snapshot s
                          where s.table_id = own_table and s.expired_at is null
                            and s.id >= c.added_snapshot and s.id < c.removed_snapshot)
    ), forgotten as (
        delete from lake.commit_removal r using unneeded u where r.file_id = u.id
    ), gone as (
        delete from lake.data_file f using unneeded u where f.id = u.id returning f.table_id, f.path, f.size_bytes
    ), queued as (
        insert into lake.deletion_queue as q (table_id, path, size_bytes, not_before)
        select g.table_id, g.path, g.size_bytes, clock_timestamp() + greatest(grace, interval '0') from gone g
        on conflict do nothing
        returning q.size_bytes
    )
    select (select count(*) from queued), (select coalesce(sum(q.size_bytes), 0)::bigint from queued q),
           l.removed_snapshot, l.id
    from (select) as always
    left join lateral (select c.removed_snapshot, c.id from candidates c
                       order by c.removed_snapshot desc, c.id desc limit 1) l on true;
end $$;

-- Files that are deleted.
create or replace function lake.forget_deleted_files_v1(ids bigint[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from lake.deletion_queue q where q.id = any(ids);
end $$;

-- Writes that began before this time, and are not staged yet, may lose files from now on.
create or replace function lake.mark_orphans_v1(own_table bigint, before timestamptz) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update lake."table" t set orphans_before = greatest(t.orphans_before, least(before, clock_timestamp()))
    where t.id = own_table;
end $$;

-- The commits of a dropped table can no longer be published, and its snapshots expire, all of them, unless somebody reads
-- one: they are locked against whoever takes a lease.
create or replace function lake.retire_dropped_v1(own_table bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not exists (select from lake."table" t where t.id = own_table and t.dropped_at is not null) then
        return;
    end if;
    perform from lake.snapshot s where s.table_id = own_table and s.expired_at is null order by s.id for update;
    update lake.commit c set state = 'expired', decided_at = clock_timestamp(), reason = 'the table was dropped'
    where c.table_id = own_table and c.state <> 'published' and c.state in ('staged', 'rejected');
    update lake.snapshot s set expired_at = clock_timestamp()
    where s.table_id = own_table and s.expired_at is null
      and not exists (select from lake.lease l where l.table_id = own_table and l.expires_at > clock_timestamp());
end $$;

-- Some files of a dropped table without snapshots go to the queue, due at once.
create or replace function lake.queue_files_of_dropped_v1(own_table bigint, most integer) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    files bigint;
begin
    perform pg_advisory_xact_lock(hashtextextended('lake.queue ' || own_table, 0));
    perform set_config('lake.grace', '0', true);
    with own as materialized (
        select f.id from lake.data_file f join lake."table" t on t.id = f.table_id
        where f.table_id = own_table and t.dropped_at is not null
          and not exists (select from lake.snapshot s where s.table_id = own_table and s.expired_at is null)
        limit most
    ), forgotten as (
        delete from lake.commit_removal r using own where r.file_id = own.id
    ), gone as (
        delete from lake.data_file f using own where f.id = own.id returning f.table_id, f.path, f.size_bytes
    ), queued as (
        insert into lake.deletion_queue (table_id, path, size_bytes, not_before)
        select g.table_id, g.path, g.size_bytes, clock_timestamp() from gone g
        on conflict (table_id, path) do nothing
    )
    select count(*) into files from gone;
    return files;
end $$;

-- A dropped table that has no files and no readers any more leaves the catalog; nothing if it has.
create or replace function lake.forget_dropped_v1(own_table bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    with gone as materialized (
        select t.id from lake."table" t
        where t.id = own_table and t.dropped_at is not null
          and not exists (select from lake.data_file f where f.table_id = t.id)
          and not exists (select from lake.deletion_queue q where q.table_id = t.id)
          and not exists (select from lake.snapshot s where s.table_id = t.id and s.expired_at is null)
        for update
    ), gone_commits as materialized (
        select c.id from lake.commit c join gone on gone.id = c.table_id
    ), reads as (
        delete from lake.commit_read r using gone_commits c where r.commit_id = c.id
    ), removals as (
        delete from lake.commit_removal r using gone_commits c where r.commit_id = c.id
    ), verdicts as (
        delete from lake.verdict v using gone_commits c where v.commit_id = c.id
    ), marks as (
        delete from lake.done_partition d using gone where d.table_id = gone.id
    ), tags as (
        delete from lake.tag g using gone where g.table_id = gone.id
    ), leases as (
        delete from lake.lease l using gone where l.table_id = gone.id
    ), progress as (
        delete from lake.writer_progress p using gone where p.table_id = gone.id
    ), snapshots as (
        delete from lake.snapshot s using gone where s.table_id = gone.id
    ), commits as (
        delete from lake.commit c using gone where c.table_id = gone.id
    ), partitions as (
        delete from lake.partition p using gone where p.table_id = gone.id
    ), schemas as (
        delete from lake.table_schema s using gone where s.table_id = gone.id
    )
    delete from lake."table" t using gone where t.id = gone.id;
end $$;

-- Nobody is promised anything of a table that was dropped.
create or replace function lake.reset_marks_of_dropped_v1() returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update lake.done_partition d set reset_at = clock_timestamp()
    from lake."table" t where t.id = d.table_id and t.dropped_at is not null and d.reset_at is null;
end $$;
