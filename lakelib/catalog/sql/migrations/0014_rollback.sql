-- A rollback names files again that were there before: a path stands in several commits, and is free once it is in none.
alter table lake.data_file drop constraint data_file_table_id_path_key;
alter table lake.data_file add unique (table_id, path, commit_id);

-- A path that a file still has is not queued: a rollback may have named it again.
create function lake.skip_named_v1() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from lake.data_file f where f.table_id = new.table_id and f.path = new.path) then
        return null;
    end if;
    return new;
end $$;

create trigger named_files_stay before insert on lake.deletion_queue for each row execute function lake.skip_named_v1();

-- The snapshot whose content a rollback brings back.
alter table lake.commit add column restores bigint;
alter table lake.commit add check ((kind = 'rollback') = (restores is not null));
alter table lake.commit add foreign key (table_id, restores) references lake.snapshot (table_id, id);
create index snapshot_rollback on lake.snapshot (table_id, id) where kind = 'rollback';
