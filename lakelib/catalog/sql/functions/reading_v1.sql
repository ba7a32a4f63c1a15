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
