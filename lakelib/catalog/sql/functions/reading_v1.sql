-- A reader's hold on a snapshot, for a week at most; nothing if the snapshot is gone. The row's lock makes it wait for an
-- expiry under way, and sees what that has done.
create or replace function lake.take_lease_v1(own_id uuid, own_table bigint, own_snapshot bigint, own_holder text, duration interval)
returns setof uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    insert into lake.lease as l (id, table_id, snapshot_id, holder, expires_at, taken_by)
    select own_id, s.table_id, s.id, own_holder, clock_timestamp() + least(duration, interval '7 days'), session_user
    from lake.snapshot s where s.table_id = own_table and s.id = own_snapshot and s.expired_at is null
    for key share
    on conflict (id) do update set expires_at = excluded.expires_at where l.taken_by = session_user
    returning l.id;
end $$;

-- A reader's hold on all snapshots from the first to the last, for a week at most. The first of them that is gone, and
-- then nothing is held; null if they are. Waits for an expiry under way, and sees what that has done.
create or replace function lake.take_range_v1(own_id uuid, own_table bigint, first_id bigint, last_id bigint, own_holder text,
                                   duration interval) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    missing bigint;
begin
    perform pg_advisory_xact_lock_shared(hashtextextended('lake.expire ' || own_table, 0));
    -- Those of a dropped table expire under the locks of their rows.
    perform from lake.snapshot s where s.table_id = own_table and s.id in (first_id, last_id) order by s.id for key share;
    missing := lake.first_missing_v1(own_table, first_id, last_id);
    if missing is null then
        insert into lake.lease as l (id, table_id, snapshot_id, last_snapshot_id, holder, expires_at, taken_by)
        values (own_id, own_table, first_id, last_id, own_holder,
                clock_timestamp() + least(duration, interval '7 days'), session_user)
        on conflict (id) do update set expires_at = excluded.expires_at where l.taken_by = session_user;
    end if;
    return missing;
end $$;

-- Of the snapshots of a range the first that has expired, or never was; null if all can be read.
create or replace function lake.first_missing_v1(own_table bigint, first_id bigint, last_id bigint) returns bigint
language plpgsql stable as $$
declare
    before bigint;
begin
    if first_id > last_id or not exists (select from lake.snapshot s where s.table_id = own_table and s.id = first_id
                                         and s.expired_at is null) then
        return first_id;
    end if;
    -- The last of those that follow each other without a gap.
    select min(s.id) into before from lake.snapshot s
    where s.table_id = own_table and s.id between first_id and last_id - 1 and s.expired_at is null
      and not exists (select from lake.snapshot n where n.table_id = s.table_id and n.id = s.id + 1 and n.expired_at is null);
    return before + 1;
end $$;

-- A longer hold; nothing if it had been given up, or is another user's.
create or replace function lake.renew_lease_v1(own_id uuid, duration interval) returns setof uuid
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    update lake.lease l set expires_at = clock_timestamp() + least(duration, interval '7 days')
    where l.id = own_id and l.taken_by = session_user returning l.id;
end $$;

-- The end of a user's own hold.
create or replace function lake.release_lease_v1(own_id uuid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from lake.lease l where l.id = own_id and l.taken_by = session_user;
end $$;
