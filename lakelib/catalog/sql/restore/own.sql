-- The restored lake has files of its own: it is another lake than its original. The notes of done partitions are the
-- original's.
update lake.done_partition set success_file = false where success_file;

do $$
begin
    if to_regclass('lake.identity') is not null then
        delete from lake.identity;
        insert into lake.identity (id, epoch, token, system_identifier, database_oid, timeline, data_made_at)
        select gen_random_uuid(), 1, gen_random_uuid(), s.system_identifier, s.database_oid, s.timeline, s.data_made_at
        from lake.server_v1() s;
    end if;
end $$;
