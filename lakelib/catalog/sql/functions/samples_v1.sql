-- Verdicts on rows that are gone show none of them any more: commits have expired, or no file of theirs is left.
create or replace function lake.forget_samples_v1(own_table bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update lake.verdict v
    set evidence = jsonb_set(v.evidence, '{checks}', (
        select jsonb_agg(each.told || '{"sample": []}' order by each.place)
        from jsonb_array_elements(v.evidence -> 'checks') with ordinality as each (told, place)))
    from lake.commit c
    where c.table_id = own_table and c.state in ('published', 'expired') and v.commit_id = c.id
      and not exists (select from lake.data_file f where f.commit_id = c.id)
      and jsonb_path_exists(v.evidence, '$.checks[*].sample[*]');
end $$;

revoke all on function lake.forget_samples_v1(bigint) from public;
