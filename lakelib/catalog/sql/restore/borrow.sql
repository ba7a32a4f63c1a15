-- The restored lake reads its original's files: it changes nothing until it is adopted. A catalog that knows its identity
-- is bound to no server now; in one that does not, every change is refused, whatever the client.
do $$
declare
    guarded text;
begin
    if to_regclass('lake.identity') is not null then
        update lake.identity set system_identifier = 0;
        return;
    end if;
    create function lake.refuse_change() returns trigger language plpgsql as $refuse$
    begin
        raise exception 'This lake was restored beside its original and reads its files: it may not be changed. If the original is gone for good: drop function lake.refuse_change() cascade'
            using errcode = 'read_only_sql_transaction';
    end $refuse$;
    for guarded in
        select c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'lake' and c.relkind = 'r' and c.relname not in ('lease', 'migration')
    loop
        execute format('create trigger refuse_change before insert or update or delete on lake.%I'
                       ' for each statement execute function lake.refuse_change()', guarded);
    end loop;
end $$;
