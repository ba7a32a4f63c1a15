-- A schema id and column ids that nobody else will ever get on this table; nothing if it was dropped.
create or replace function lake.reserve_schema_v1(own_table bigint, column_count integer)
returns table (schema_id integer, first_column_id integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if column_count not between 0 and 1000000 then
        raise invalid_parameter_value using message = format('%s columns cannot be reserved', column_count);
    end if;
    return query
    update lake."table" t set last_schema_id = t.last_schema_id + 1, last_column_id = t.last_column_id + column_count
    where t.id = own_table and t.dropped_at is null
    returning t.last_schema_id, t.last_column_id - column_count + 1;
end $$;

-- Earlier versions of a piece of work that have not appended the rows of a partition yet never will.
create or replace function lake.overtake_appends_v1(own_table bigint, own_application text, own_version bigint, own_partition text)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update lake.commit c
    set state = 'expired', decided_at = clock_timestamp(), reason = 'a later version took over'
    where c.table_id = own_table and c.application = own_application and c.version < own_version
      and c.state in ('staged', 'rejected') and c.kind = 'append' and c.properties ->> 'partition' = own_partition;
end $$;

-- The file of a mark that was reset is gone; nothing if the partition was marked again meanwhile.
create or replace function lake.forget_success_file_v1(own_table bigint, own_partition bigint, moment timestamptz)
returns setof bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    update lake.done_partition d set success_file = false
    where d.table_id = own_table and d.partition_id = own_partition and d.modified_at = moment and d.reset_at is not null
    returning d.partition_id;
end $$;

-- A warehouse belongs to the lake, if it did not already: whoever has left the note in it says so.
create or replace function lake.bind_warehouse_v1(own_id uuid, own_uri text, own_epoch bigint, own_token uuid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not lake.has_right_v1('maintain') then
        perform lake.check_right_v1('write');
    end if;
    insert into lake.warehouse (id, uri, epoch, token) values (own_id, own_uri, own_epoch, own_token)
    on conflict do nothing;
end $$;
