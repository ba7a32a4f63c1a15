-- Which lake this is, and on which server: one row. Whoever adopts the lake raises its epoch. What is null of the server
-- is not known, and not compared.
create table lake.identity (
    only_one boolean primary key default true check (only_one),
    id uuid not null,
    epoch bigint not null check (epoch > 0),
    system_identifier bigint not null,
    database_oid bigint not null,
    timeline text,
    data_made_at timestamptz,
    adopted_at timestamptz,
    adopted_by text,
    adoption_reason text,
    check ((adopted_at is null) = (adopted_by is null)),
    check ((adopted_at is null) = (adoption_reason is null))
);

-- The warehouses of this lake. A note in each repeats id, epoch and token. Locations that begin with `uri` mean the place
-- where the note is, wherever that has moved.
create table lake.warehouse (
    id uuid primary key,
    uri text not null unique,
    epoch bigint not null,
    token uuid not null,
    bound_at timestamptz not null default clock_timestamp()
);

-- This server and database. A dump that was restored has another identifier or oid, a promoted replica another timeline,
-- a copy of the data folder files that were made later; these only those may see who may call pg_stat_file.
create function lake.server_v1(
    out system_identifier bigint, out database_oid bigint, out timeline text, out data_made_at timestamptz
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    system_identifier := (select s.system_identifier from pg_control_system() s);
    database_oid := (select d.oid from pg_database d where d.datname = current_database());
    if not pg_is_in_recovery() then
        timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    end if;
    if has_function_privilege('pg_stat_file(text)', 'execute') then
        data_made_at := (pg_stat_file('PG_VERSION')).change;
    end if;
end $$;

-- Null if the catalog is still the one that a client saw at this epoch, on the server that it is bound to. Otherwise the
-- word for what differs: identity, epoch, server, database, timeline or copied.
create function lake.check_identity_v1(seen_epoch bigint) returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    bound lake.identity;
    here record;
begin
    select * into bound from lake.identity;
    if not found then
        return 'identity';
    end if;
    here := lake.server_v1();
    return case
        when bound.epoch is distinct from seen_epoch then 'epoch'
        when bound.system_identifier <> here.system_identifier then 'server'
        when bound.database_oid <> here.database_oid then 'database'
        when bound.timeline <> here.timeline then 'timeline'
        when bound.data_made_at <> here.data_made_at then 'copied'
    end;
end $$;

insert into lake.identity (id, epoch, system_identifier, database_oid, timeline, data_made_at)
select gen_random_uuid(), 1, s.system_identifier, s.database_oid, s.timeline, s.data_made_at
from lake.server_v1() s;
