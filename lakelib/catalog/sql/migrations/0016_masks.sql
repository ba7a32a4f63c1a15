-- As of which snapshots the masks of a partition's files are kept: one that touched it, and until the next one does.
create table lake.masked (
    partition_id bigint not null references lake.partition (id) on delete cascade,
    snapshot_id bigint not null,
    primary key (partition_id, snapshot_id)
);

-- The rows of a file that readers do not see, for later runs supersede or delete them: as of the snapshots from one on, and
-- until before another. Where small the vector of positions is here, else it is a file.
create table lake.mask (
    id bigint generated always as identity primary key,
    table_id bigint not null references lake."table" (id),
    file_id bigint not null references lake.data_file (id) on delete cascade,
    from_snapshot bigint not null,
    until_snapshot bigint,
    row_count bigint not null check (row_count > 0),
    size_bytes bigint not null,
    vector bytea,
    path text,
    check (until_snapshot > from_snapshot),
    check ((vector is null) <> (path is null))
);

create unique index mask_file on lake.mask (file_id, from_snapshot);
create index mask_path on lake.mask (table_id, path) where path is not null;

-- The file of a mask goes with it. Who forgets masks says for how long it stays.
create function lake.queue_mask_v1() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into lake.deletion_queue (table_id, path, size_bytes, not_before)
    values (old.table_id, old.path, old.size_bytes,
            clock_timestamp() + coalesce(nullif(current_setting('lake.grace', true), ''), '1 hour')::interval)
    on conflict do nothing;
    return null;
end $$;

create trigger mask_forgotten after delete on lake.mask
    for each row when (old.path is not null) execute function lake.queue_mask_v1();

-- What was known before a file went that is forgotten now, no snapshot needs.
create function lake.forget_masked_v1() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from lake.masked m where m.partition_id = old.partition_id and m.snapshot_id < old.removed_snapshot;
    return null;
end $$;

create trigger file_forgotten after delete on lake.data_file
    for each row when (old.removed_snapshot is not null) execute function lake.forget_masked_v1();
