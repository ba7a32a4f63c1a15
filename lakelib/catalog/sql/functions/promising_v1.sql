-- A new tag; nothing if the name is taken or the snapshot is gone. Waits for an expiry under way, as a lease does.
create or replace function lake.set_tag_v1(own_table bigint, own_name text, own_snapshot bigint)
returns table (name text, snapshot_id bigint, created_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    insert into lake.tag as g (table_id, name, snapshot_id)
    select s.table_id, own_name, s.id
    from lake.snapshot s where s.table_id = own_table and s.id = own_snapshot and s.expired_at is null
    for key share
    on conflict do nothing
    returning g.name, g.snapshot_id, g.created_at;
end $$;

-- The end of a tag.
create or replace function lake.delete_tag_v1(own_table bigint, own_name text) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query delete from lake.tag g where g.table_id = own_table and g.name = own_name returning g.name;
end $$;

-- A partition is done as of the table's head, which nobody moves until the transaction's end; nothing if the table was
-- dropped. One without rows comes into being. Marking it again keeps the time of the first mark.
create or replace function lake.mark_partition_v1(own_table bigint, own_key bytea[], own_path text, with_file boolean)
returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    own_head bigint;
begin
    perform lake.check_paths_v1(array[own_path]);
    -- Before the lock: who publishes has entered his before, too.
    insert into lake.partition (table_id, key, path)
    select t.id, own_key, own_path from lake."table" t where t.id = own_table and t.dropped_at is null
    on conflict (table_id, key) do nothing;
    select t.head_id into own_head from lake."table" t
    where t.id = own_table and t.dropped_at is null for no key update;
    if not found then
        return;
    end if;
    return query
    insert into lake.done_partition as d (table_id, partition_id, snapshot_id, created_at, modified_at, success_file)
    select own_table, p.id, own_head, moment, moment, with_file
    from lake.partition p, clock_timestamp() as moment where p.table_id = own_table and p.key = own_key
    on conflict (table_id, partition_id) do update
    set snapshot_id = excluded.snapshot_id, reset_at = null, success_file = d.success_file or excluded.success_file,
        modified_at = greatest(excluded.modified_at, d.modified_at + interval '1 microsecond')
    returning d.partition_id;
end $$;
