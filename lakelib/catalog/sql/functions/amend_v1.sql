-- A staged commit changes: it adds other files, takes others out, and is made from a later head. Verdicts on what it was
-- are stale.
--
-- The outcome is amended; ended, if it is not staged any more, files_reclaimed, past_expired or input_gone, which change
-- nothing; or busy.
create or replace function lake.amend_v1(change jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    own lake.commit;
    adds constant boolean := jsonb_array_length(change -> 'files') > 0;
    answer jsonb;
begin
    perform set_config('lock_timeout', change ->> 'patience_ms', true);
    begin
        select * into own from lake.commit c where c.id = (change ->> 'id')::uuid;
        perform lake.check_change_v1(own.kind);
        if adds then
            perform pg_advisory_xact_lock_shared(hashtextextended(own.table_id || ' orphans', 0));
        end if;
        select * into own from lake.commit c where c.id = own.id for no key update;
        if not found then
            return '{"outcome": "ended"}';
        end if;
        -- The reply was lost: whatever became of the commit since, the files of this are its.
        if own.amendment >= (change ->> 'number')::integer then
            return '{"outcome": "amended"}';
        end if;
        if own.state <> 'staged' then
            return '{"outcome": "ended"}';
        end if;
        if lake.has_lost_rows_v1(own, (change ->> 'base_snapshot_id')::bigint) then
            return '{"outcome": "input_gone"}';
        end if;
        if adds and exists (select from lake."table" t
                            where t.id = own.table_id and t.orphans_before > (change ->> 'began_at')::timestamptz) then
            return '{"outcome": "files_reclaimed"}';
        end if;
        delete from lake.data_file f
        where f.commit_id = own.id
          and f.path in (select value from jsonb_array_elements_text(change -> 'withdrawn_paths'));
        delete from lake.commit_removal r
        where r.commit_id = own.id
          and r.file_id in (select value::bigint from jsonb_array_elements_text(change -> 'withdrawn_file_ids'));
        if adds then
            perform lake.enter_files_v1(own.id, own.table_id, own.schema_id, change);
        end if;
        perform lake.check_past_v1(change || jsonb_build_object('table_id', own.table_id));
        perform lake.enter_dependencies_v1(change || jsonb_build_object('kind', own.kind), true);
        if change ->> 'keys_until' is not null then
            update lake.commit c
            set keys_until = greatest(c.keys_until, (change ->> 'keys_until')::bigint),
                marks_run = least(c.marks_run, (change ->> 'marks_run')::integer),
                keys_beneath = array(select value::uuid from jsonb_array_elements_text(change -> 'keys_beneath'))
            where c.id = own.id;
            -- Who has looked and found nothing has changed nothing.
            if not adds then
                return '{"outcome": "amended"}';
            end if;
        end if;
        update lake.commit c
        set summary = c.summary || lake.summarise_v1(own.id) || lake.not_counted_v1(), amendment = c.amendment + 1,
            base_snapshot_id = coalesce((change ->> 'base_snapshot_id')::bigint, c.base_snapshot_id)
        where c.id = own.id;
    exception
        when sqlstate 'LK001' then
            get stacked diagnostics answer = pg_exception_detail;
            return answer;
        when lock_not_available or deadlock_detected then
            return '{"outcome": "busy"}';
    end;
    return '{"outcome": "amended"}';
end $$;

-- Whether rows went where the commit has read, up to a base that it is to have, or a rollback has put old ones anywhere:
-- who looks at what is new does not see them. Where rows have an order of their own its marks on those that went would
-- hide later ones. Publishing looks at what comes after the base only.
create or replace function lake.has_lost_rows_v1(own lake.commit, base bigint) returns boolean
language plpgsql as $$
begin
    return base > own.base_snapshot_id
        and (exists (select from lake.rolled_back_v1(own.table_id, own.base_snapshot_id))
             or (select cardinality(t.sequence_by) > 0 from lake."table" t where t.id = own.table_id)
                and (lake.happened_v1(own)).rows_removed);
end $$;

-- What brings no rows does not come to bring them.
create or replace function lake.check_change_v1(own_kind text) returns void
language plpgsql as $$
begin
    if own_kind is not null then
        perform lake.check_right_v1(lake.right_of_v1(own_kind));
    end if;
    if own_kind = 'evolve' then
        raise invalid_parameter_value using message = 'a change of the schema brings no rows and takes none away';
    end if;
    if own_kind = 'rollback' then
        raise invalid_parameter_value using message = 'a rollback brings back what a snapshot held, and nothing else';
    end if;
end $$;

-- What a commit does to rows is counted when it is made: not by whom it is changed.
create or replace function lake.not_counted_v1() returns jsonb
language sql immutable as $$
    select '{"rows_inserted": null, "rows_updated": null, "rows_deleted": null}'::jsonb;
$$;

-- What a commit does, counted anew.
create or replace function lake.summarise_v1(own_id uuid) returns jsonb
language plpgsql as $$
begin
    return (select jsonb_build_object(
                'rows_written', coalesce(sum(f.row_count - f.delete_count), 0),
                'deletes_written', coalesce(sum(f.delete_count), 0),
                'files_added', count(*),
                'files_removed', (select count(*) from lake.commit_removal r where r.commit_id = own_id),
                'bytes_added', coalesce(sum(f.size_bytes), 0),
                'partitions', count(distinct f.partition_id))
            from lake.data_file f where f.commit_id = own_id);
end $$;

-- A staged overwrite takes out what is in its target now: files of compactions that have replaced what it was to take out;
-- with `rebase` whatever was added since. Anything else is left for publishing to tell. The outcome is retargeted, busy or
-- unsettled.
create or replace function lake.retarget_v1(own_id uuid, publishing jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    own lake.commit;
    home lake."table";
    happened record;
    answer jsonb;
begin
    perform lake.check_right_v1('write');
    perform set_config('lock_timeout', publishing ->> 'patience_ms', true);
    begin
        perform from lake.commit c join lake."table" t on t.id = c.table_id where c.id = own_id for no key update of t, c;
        select * into own from lake.commit c where c.id = own_id;
        select * into home from lake."table" t where t.id = own.table_id;
        if own.state = 'staged' and own.kind = 'overwrite' and home.dropped_at is null
           and own.base_snapshot_id < home.head_id then
            perform lake.settle_reads_v1(own, home, publishing -> 'settled' -> own_id::text);
            happened := lake.happened_v1(own);
            if (publishing ->> 'rebase')::boolean
               or not (happened.rows_added or happened.rows_removed or happened.rolled_back) then
                perform lake.rebase_v1(own_id, (publishing ->> 'rebase')::boolean);
            end if;
        end if;
        return '{"outcome": "retargeted"}';
    exception
        when sqlstate 'LK001' then
            get stacked diagnostics answer = pg_exception_detail;
            return answer;
        when lock_not_available or deadlock_detected then
            return '{"outcome": "busy"}';
    end;
end $$;
