-- The file of a mask goes with it. Who forgets masks says for how long it stays.
create or replace function lake.queue_mask_v1() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into lake.deletion_queue (table_id, path, size_bytes, not_before)
    values (old.table_id, old.path, old.size_bytes,
            clock_timestamp() + coalesce(nullif(current_setting('lake.grace', true), ''), '1 hour')::interval)
    on conflict do nothing;
    return null;
end $$;

-- What was known before a file went that is forgotten now, no snapshot needs.
create or replace function lake.forget_masked_v1() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from lake.masked m where m.partition_id = old.partition_id and m.snapshot_id < old.removed_snapshot;
    return null;
end $$;

-- The masks of partitions' files, each as of a snapshot that has touched it: of the files that are named they are others
-- than before, and with `anew` of all. Not kept are those of which others have kept some since `base`, of which the newest
-- were known. Returns the partitions whose masks are. What a mask hides no gate has judged: this is not for everybody who
-- writes.
create or replace function lake.keep_masks_v1(own_table bigint, wanted jsonb) returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    each record;
begin
    perform lake.check_right_v1('maintain');
    perform pg_advisory_xact_lock(hashtextextended('lake.masks ' || own_table, 0));
    for each in
        select w.* from jsonb_to_recordset(wanted)
            as w (partition_id bigint, snapshot_id bigint, base bigint, anew boolean, masks jsonb)
        join lake.partition p on p.id = w.partition_id and p.table_id = own_table
        where (select max(m.snapshot_id) from lake.masked m where m.partition_id = w.partition_id)
              is not distinct from w.base
          and (w.base is null or w.base < w.snapshot_id)
        order by w.partition_id
    loop
        perform lake.check_paths_v1(
            (select array_agg(m.path) from jsonb_to_recordset(each.masks) as m (path text) where m.path is not null));
        update lake.mask m set until_snapshot = each.snapshot_id
        from lake.data_file f
        where f.table_id = own_table and f.partition_id = each.partition_id and m.file_id = f.id
          and m.until_snapshot is null
          and (each.anew or f.id in (select n.file_id from jsonb_to_recordset(each.masks) as n (file_id bigint)));
        insert into lake.mask (table_id, file_id, from_snapshot, row_count, size_bytes, vector, path)
        select own_table, f.id, each.snapshot_id, m.row_count, m.size_bytes, decode(m.vector, 'hex'), m.path
        from jsonb_to_recordset(each.masks)
            as m (file_id bigint, row_count bigint, size_bytes bigint, vector text, path text)
        join lake.data_file f on f.id = m.file_id and f.table_id = own_table and f.partition_id = each.partition_id;
        insert into lake.masked (partition_id, snapshot_id) values (each.partition_id, each.snapshot_id);
        return next each.partition_id;
    end loop;
end $$;

-- Masks that no snapshot needs go; their files enter the queue.
create or replace function lake.forget_masks_v1(own_table bigint, grace interval) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform lake.check_right_v1('maintain');
    perform set_config('lake.grace', greatest(grace, interval '0')::text, true);
    delete from lake.mask m
    where m.table_id = own_table and m.until_snapshot is not null
      and not exists (select from lake.snapshot s
                      where s.table_id = own_table and s.expired_at is null
                        and s.id >= m.from_snapshot and s.id < m.until_snapshot);
    delete from lake.masked m using lake.partition p
    where p.id = m.partition_id and p.table_id = own_table
      and m.snapshot_id < (select max(n.snapshot_id) from lake.masked n where n.partition_id = m.partition_id)
      and not exists (select from lake.snapshot s
                      where s.table_id = own_table and s.expired_at is null and s.id >= m.snapshot_id
                        and s.id < (select min(n.snapshot_id) from lake.masked n
                                    where n.partition_id = m.partition_id and n.snapshot_id > m.snapshot_id));
end $$;
