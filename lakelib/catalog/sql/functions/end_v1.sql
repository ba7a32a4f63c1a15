-- A staged commit ends without being published: rejected, which a person may overrule, or expired. The outcome is ended,
-- decided with the state that it has, or commit_missing.
create or replace function lake.end_v1(own_id uuid, wanted text, why text) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    found_state text;
    table_name text;
begin
    perform lake.check_right_v1(case wanted when 'rejected' then 'judge' else lake.right_of_v1(c.kind) end)
    from lake.commit c where c.id = own_id;
    update lake.commit set state = wanted, decided_at = clock_timestamp(), reason = why
    where id = own_id and state = 'staged' and wanted in ('rejected', 'expired');
    if found then
        return '{"outcome": "ended"}';
    end if;
    select c.state, t.namespace || '.' || t.name into found_state, table_name
    from lake.commit c join lake."table" t on t.id = c.table_id where c.id = own_id;
    if not found then
        return jsonb_build_object('outcome', 'commit_missing', 'commit_id', own_id);
    end if;
    return jsonb_build_object('outcome', case when found_state = wanted then 'ended' else 'decided' end,
                              'state', found_state, 'table_name', table_name);
end $$;
