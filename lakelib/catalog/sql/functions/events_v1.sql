-- Somebody listens on `lake_commit` to a table, or to all if none is named, for so long unless it is said again; for no time
-- when it is over.
create or replace function lake.listen_v1(own_id uuid, own_table bigint, duration interval) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from lake.listener l
    where l.id in (select late.id from lake.listener late where late.until < clock_timestamp() for update skip locked);
    insert into lake.listener (id, table_id, until)
    values (own_id, own_table, clock_timestamp() + least(duration, interval '10 minutes'))
    on conflict (id) do update set until = excluded.until;
end $$;

-- Tells those who listen what was published, a snapshot each: {"table": …, "snapshot": …, "partitions": […]}, ids alone, for
-- anybody may listen; partitions are null where there are many. In a transaction of its own: one that notifies locks the
-- whole database against others that do until it has ended.
create or replace function lake.tell_v1(own_tables bigint[], own_snapshots bigint[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    most constant integer := 100;
begin
    perform pg_notify('lake_commit', jsonb_build_object(
        'table', s.table_id, 'snapshot', s.id,
        'partitions', case when cardinality(touched.ids) <= most then to_jsonb(touched.ids) end)::text)
    from unnest(own_tables, own_snapshots) as told (table_id, id)
    join lake.snapshot s on s.table_id = told.table_id and s.id = told.id
    cross join lateral (select array(
        select distinct f.partition_id from (
            select f.partition_id from lake.data_file f where f.table_id = s.table_id and f.added_snapshot = s.id
            union all
            select f.partition_id from lake.data_file f where f.table_id = s.table_id and f.removed_snapshot = s.id) f
        limit most + 1) as ids) touched;
end $$;
