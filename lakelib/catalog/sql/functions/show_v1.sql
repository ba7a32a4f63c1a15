-- DuckLake's views show a snapshot of a table with a key from now on. `masks` are all that its files have: those that were
-- shown before by their ids (`kept`), the others as the files that they are. False if it is shown, or a later one is, or
-- what was to be kept is not the last any more. What a mask hides no gate has judged: this is not for everybody who writes.
create or replace function lake.show_v1(own_table bigint, own_snapshot bigint, kept bigint[], masks jsonb) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform lake.check_right_v1('maintain');
    perform pg_advisory_xact_lock(hashtextextended('lake.show ' || own_table, 0));
    perform lake.check_paths_v1((select array_agg(m.path) from jsonb_to_recordset(masks) as m (path text)));
    if exists (select from lake.shown s where s.table_id = own_table and s.snapshot_id >= own_snapshot)
       or (select count(*) from lake.shown_mask m
           where m.table_id = own_table and m.until_snapshot is null and m.id = any(kept)) < cardinality(kept) then
        return false;
    end if;
    insert into lake.shown (table_id, snapshot_id)
    select s.table_id, s.id from lake.snapshot s
    where s.table_id = own_table and s.id = own_snapshot and s.expired_at is null;
    if not found then
        return false;
    end if;
    update lake.shown_mask m set until_snapshot = own_snapshot
    where m.table_id = own_table and m.until_snapshot is null and m.id <> all(kept);
    insert into lake.shown_mask (table_id, file_id, from_snapshot, row_count, size_bytes, path, made_of)
    select own_table, f.id, own_snapshot, m.row_count, m.size_bytes, m.path, m.made_of
    from jsonb_to_recordset(masks) as m (file_id bigint, row_count bigint, size_bytes bigint, path text, made_of text)
    join lake.data_file f on f.id = m.file_id and f.table_id = own_table;
    return true;
end $$;

-- What expired snapshots have shown is forgotten; files of masks that no shown one needs enter the queue.
create or replace function lake.forget_shown_v1(own_table bigint, grace interval) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform lake.check_right_v1('maintain');
    perform set_config('lake.grace', greatest(grace, interval '0')::text, true);
    delete from lake.shown h using lake.snapshot s
    where h.table_id = own_table and s.table_id = h.table_id and s.id = h.snapshot_id and s.expired_at is not null;
    delete from lake.shown_mask m
    where m.table_id = own_table and m.until_snapshot is not null
      and not exists (select from lake.shown h where h.table_id = own_table
                      and h.snapshot_id >= m.from_snapshot and h.snapshot_id < m.until_snapshot);
end $$;
