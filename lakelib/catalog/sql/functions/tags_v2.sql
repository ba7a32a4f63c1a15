-- A new tag; nothing if the name is on another snapshot, or the snapshot is gone. Waits for an expiry under way, as a lease
-- does. With `keep` or `keep_last` the tag has an end, without both it has none. Set again it stays for as long as any of
-- those who have set it have said: one without an end stays without.
create or replace function lake.set_tag_v2(own_table bigint, own_name text, own_snapshot bigint, own_family text, keep interval,
                                own_keep_last integer)
returns setof lake.tag
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    has_end constant boolean := keep is not null or own_keep_last is not null;
begin
    return query
    insert into lake.tag as g (table_id, name, snapshot_id, family, until, keep_last)
    select s.table_id, own_name, s.id, case when has_end then coalesce(own_family, '') end,
           clock_timestamp() + keep, own_keep_last
    from lake.snapshot s where s.table_id = own_table and s.id = own_snapshot and s.expired_at is null
    for key share
    on conflict (table_id, name) do update
    set family = case when has_end and g.family is not null then excluded.family end,
        until = case when has_end and g.family is not null then greatest(g.until, excluded.until) end,
        keep_last = case when has_end and g.family is not null then greatest(g.keep_last, excluded.keep_last) end
    where g.snapshot_id = excluded.snapshot_id
    returning g.*;
end $$;

-- The tags whose time is over: those that have an end, are not among the last of their family, and whose moment has come.
create or replace function lake.ended_tags_v1(own_table bigint) returns setof text
language plpgsql stable as $$
begin
    return query
    select g.name
    from (select t.*, row_number() over (partition by t.family order by t.snapshot_id desc, t.created_at desc, t.name) as place
          from lake.tag t where t.table_id = own_table and t.family is not null) g
    where (g.until is null or g.until <= clock_timestamp()) and (g.keep_last is null or g.place > g.keep_last);
end $$;

-- They go; returns them. Locks first and looks afterwards: what somebody has just set again for longer stays.
create or replace function lake.expire_tags_v1(own_table bigint) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform lake.check_right_v1('maintain');
    perform from lake.tag g where g.table_id = own_table and g.family is not null order by g.name for update;
    return query
    delete from lake.tag g using lake.ended_tags_v1(own_table) as ended (name)
    where g.table_id = own_table and g.name = ended.name
    returning g.name;
end $$;
