-- A gate's verdict is kept with its commit, as that was when it was judged; one that rejects also rejects the commit. The
-- outcome is kept, decided for a commit that is published or expired, past_expired, or commit_missing.
create or replace function lake.judge_v1(verdict jsonb, rejection text) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    own lake.commit;
begin
    perform lake.check_right_v1('judge');
    select * into own from lake.commit c where c.id = (verdict ->> 'commit_id')::uuid for no key update;
    if not found then
        return jsonb_build_object('outcome', 'commit_missing');
    end if;
    if own.state not in ('staged', 'rejected') then
        return jsonb_build_object('outcome', 'decided', 'state', own.state);
    end if;
    -- An expiry under way comes first, and is seen; a later one sees the verdict.
    perform pg_advisory_xact_lock_shared(hashtextextended('lake.expire ' || own.table_id, 0));
    if exists (select from lake.snapshot s where s.table_id = own.table_id and s.expired_at is not null
                 and s.id >= (verdict ->> 'base_snapshot_id')::bigint) then
        return jsonb_build_object('outcome', 'past_expired');
    end if;
    insert into lake.verdict (commit_id, gate, outcome, base_snapshot_id, evidence, judged_at, suite_hash, engine, seconds,
                              judges_partitions, judges_table, amendment, beneath, looked_at)
    select v.commit_id, v.gate, v.outcome, v.base_snapshot_id, v.evidence, v.judged_at, v.suite_hash, v.engine, v.seconds,
           v.judges_partitions, v.judges_table, v.amendment, v.beneath,
           coalesce(v.looked_at, '{}')
    from jsonb_to_record(verdict) as v (
        commit_id uuid, gate text, outcome text, base_snapshot_id bigint, evidence jsonb, judged_at timestamptz,
        suite_hash text, engine text, seconds double precision, judges_partitions boolean, judges_table boolean,
        amendment integer, beneath uuid[], looked_at jsonb);
    if verdict ->> 'outcome' = 'reject' then
        update lake.commit c set state = 'rejected', decided_at = clock_timestamp(), reason = rejection
        where c.id = own.id and c.state = 'staged';
    end if;
    return jsonb_build_object('outcome', 'kept');
end $$;

-- Whether columns that a verdict has looked at are others by now, of their name, or of another type; or where it has looked
-- at the names themselves, whether there are others. The commit's own change of the schema counts as there.
create or replace function lake.looks_otherwise_v1(own lake.commit, home lake."table", looked_at jsonb) returns boolean
language plpgsql stable as $$
declare
    present jsonb;
begin
    select s.columns into present from lake.table_schema s
    where s.table_id = own.table_id
      and s.id = case when own.schema_id <> own.base_schema_id then own.schema_id else home.schema_id end;
    return exists (
            select from jsonb_each(looked_at -> 'columns') as seen (name, told)
            left join jsonb_array_elements(present) as now (told) on now.told ->> 'name' = seen.name
            where now.told -> 'id' is distinct from seen.told -> 'id'
               or now.told -> 'type' is distinct from seen.told -> 'type')
        or jsonb_typeof(looked_at -> 'order') = 'array'
           and looked_at -> 'order' <> jsonb_path_query_array(present, '$[*].id');
end $$;
