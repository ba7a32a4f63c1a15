-- A table gets no snapshot but by the protocol's functions: a client that was connected before its version was shut out
-- publishes nothing any more.
create or replace function lake.refuse_publish_v1() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    raise exception using
        message = 'this catalog was migrated, and this lakelib is too old to publish to it: use the newer one';
end $$;
