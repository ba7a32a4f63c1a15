-- A person decides against a commit: it is rejected, if it was still staged, and waits for nobody any more. The first who
-- does so counts. The outcome is discarded, decided for a commit that is published or expired, or commit_missing.
create or replace function lake.discard_v1(own_id uuid, own_by text, why text) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    own lake.commit;
begin
    perform lake.check_right_v1('judge');
    select * into own from lake.commit c where c.id = own_id for no key update;
    if not found then
        return jsonb_build_object('outcome', 'commit_missing');
    end if;
    if own.state not in ('staged', 'rejected') then
        return jsonb_build_object('outcome', 'decided', 'state', own.state);
    end if;
    update lake.commit c set state = 'rejected', decided_at = clock_timestamp(), reason = why
    where c.id = own.id and c.state = 'staged';
    insert into lake.discard (commit_id, discarded_by, reason) values (own.id, own_by, why) on conflict do nothing;
    return jsonb_build_object('outcome', 'discarded');
end $$;
