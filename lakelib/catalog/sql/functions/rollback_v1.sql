-- A rollback takes out the files that came after the snapshot which it restores, and names those again that have gone
-- since, with the sequence that their rows have. It is worked out by the files of both snapshots, when it is staged, and
-- anew when it is published, if compactions came in between. Returns the ids of those that it takes out.
create or replace function lake.aim_v1(own_id uuid) returns bigint[]
language plpgsql as $$
declare
    own lake.commit;
    file_ids bigint[];
begin
    select * into own from lake.commit c where c.id = own_id;
    delete from lake.commit_removal r where r.commit_id = own_id;
    delete from lake.data_file f where f.commit_id = own_id;
    with due as materialized (
        select d.file_id, d.is_restored from lake.find_rollback_v1(own.table_id, own.restores) d
    ), restored as (
        insert into lake.data_file (table_id, commit_id, partition_id, path, depth, prefix, run, level, row_count,
                                    delete_count, size_bytes, schema_id, sequence, lower_bounds, upper_bounds, null_counts)
        select f.table_id, own_id, f.partition_id, f.path, f.depth, f.prefix, f.run, f.level, f.row_count, f.delete_count,
               f.size_bytes, f.schema_id, f.sequence, f.lower_bounds, f.upper_bounds, f.null_counts
        from due d join lake.data_file f on f.id = d.file_id where d.is_restored order by f.id
    ), removed as (
        insert into lake.commit_removal (commit_id, file_id)
        select own_id, d.file_id from due d where not d.is_restored
        returning file_id
    )
    select coalesce(array_agg(r.file_id), '{}') into file_ids from removed r;
    update lake.commit c
    set summary = c.summary || lake.summarise_v1(own_id) || jsonb_build_object(
            'partitions', (select count(*) from lake.touched_v1(own_id))) || lake.count_rollback_v1(own_id)
    where c.id = own_id;
    return file_ids;
end $$;

-- How many rows it brings and takes, where that is known for nothing: no file, or in a table whose rows are not merged only
-- files that come, or only files that go.
create or replace function lake.count_rollback_v1(own_id uuid) returns jsonb
language plpgsql as $$
declare
    come bigint;
    gone bigint;
begin
    select sum(f.row_count) into come from lake.data_file f where f.commit_id = own_id;
    select sum(f.row_count) into gone
    from lake.commit_removal r join lake.data_file f on f.id = r.file_id where r.commit_id = own_id;
    if come is null and gone is null
       or (come is null or gone is null) and exists (
           select from lake.commit c join lake."table" t on t.id = c.table_id
           where c.id = own_id and t.bucket_mode = 'none') then
        return jsonb_build_object('rows_inserted', coalesce(come, 0), 'rows_updated', 0, 'rows_deleted', coalesce(gone, 0));
    end if;
    return lake.not_counted_v1();
end $$;

-- What it takes to get from what a table holds now to what it held in a snapshot: the files that come back, and those
-- that go. Where nothing but compactions has been since, a partition has the same rows, and stays as it is, if all that
-- has happened since is known still. A file that was named again meanwhile is the same file.
create or replace function lake.find_rollback_v1(own_table bigint, target bigint)
returns table (file_id bigint, is_restored boolean)
language plpgsql stable as $$
declare
    is_known constant boolean := not exists (
        select from lake.snapshot s where s.table_id = own_table and s.id > target and s.expired_at is not null);
begin
    return query
    with gone as materialized (
        select f.id, f.path, f.partition_id from lake.data_file f
        where f.table_id = own_table and f.added_snapshot <= target and f.removed_snapshot > target
    ), come as materialized (
        select f.id, f.path, f.partition_id from lake.data_file f
        where f.table_id = own_table and f.added_snapshot > target and f.removed_snapshot is null
    ), changed as materialized (
        select f.partition_id from lake.snapshot s
        join lake.data_file f on f.table_id = s.table_id and f.added_snapshot = s.id
        where s.table_id = own_table and s.id > target and s.kind <> 'compact'
        union
        select f.partition_id from lake.snapshot s
        join lake.data_file f on f.table_id = s.table_id and f.removed_snapshot = s.id
        where s.table_id = own_table and s.id > target and s.kind <> 'compact'
    )
    select g.id, true from gone g
    where (not is_known or g.partition_id in (select c.partition_id from changed c))
      and not exists (select from come c where c.path = g.path)
    union all
    select c.id, false from come c
    where (not is_known or c.partition_id in (select d.partition_id from changed d))
      and not exists (select from gone g where g.path = c.path);
end $$;

-- The partitions whose files a commit adds or takes out.
create or replace function lake.touched_v1(own_id uuid) returns setof bigint
language sql stable as $$
    select f.partition_id from lake.data_file f where f.commit_id = own_id
    union
    select f.partition_id from lake.commit_removal r join lake.data_file f on f.id = r.file_id where r.commit_id = own_id;
$$;

-- The partitions in which rollbacks have put other rows since a base, but for those `beneath`. These rows are old: no
-- sequence tells that they were not there, and what a file hid that they have taken out is there again.
create or replace function lake.rolled_back_v1(own_table bigint, base bigint, beneath uuid[] default '{}') returns setof bigint
language sql stable as $$
    select f.partition_id from lake.snapshot s
    join lake.data_file f on f.table_id = s.table_id and f.added_snapshot = s.id
    where s.table_id = own_table and s.id > base and s.kind = 'rollback' and s.commit_id <> all(beneath)
    union all
    select f.partition_id from lake.snapshot s
    join lake.data_file f on f.table_id = s.table_id and f.removed_snapshot = s.id
    where s.table_id = own_table and s.id > base and s.kind = 'rollback' and s.commit_id <> all(beneath);
$$;

-- A path that a file still has is not queued: a rollback may have named it again.
create or replace function lake.skip_named_v1() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from lake.data_file f where f.table_id = new.table_id and f.path = new.path) then
        return null;
    end if;
    return new;
end $$;
