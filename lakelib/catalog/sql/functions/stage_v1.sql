-- A proposal and its files enter the catalog, visible to nobody but those who ask for it; an older attempt at the same
-- work can no longer publish. With `publishing` the commit is published in the same transaction: its files are in before
-- the table is locked. A commit that cannot be published stays staged.
--
-- Safe to repeat with the same commit id. The outcome is staged, with how many are to be alone before it can be published,
-- or what publishing answers; busy, table_missing, table_changed, files_reclaimed, past_expired and input_gone change
-- nothing.
create or replace function lake.stage_v1(proposal jsonb, publishing jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    own_id constant uuid := proposal ->> 'id';
    own_table constant bigint := proposal ->> 'table_id';
    own_application constant text := proposal ->> 'application';
    adds constant boolean := jsonb_array_length(proposal -> 'files') > 0;
    answer jsonb;
begin
    perform lake.check_right_v1(lake.right_of_v1(proposal ->> 'kind'));
    perform set_config('lock_timeout', proposal ->> 'patience_ms', true);
    begin
        -- Attempts at the same work on the same table queue up here until the transaction's end.
        if own_application is not null then
            perform pg_advisory_xact_lock(hashtextextended(own_table || ' ' || own_application, 0));
        end if;
        -- A vacuum that is about to look for orphans waits until the transaction's end.
        if adds then
            perform pg_advisory_xact_lock_shared(hashtextextended(own_table || ' orphans', 0));
        end if;
        if lake.enter_commit_v1(proposal, adds) then
            perform lake.check_past_v1(proposal);
            if own_application is not null then
                update lake.commit
                set state = 'expired', decided_at = clock_timestamp(), reason = 'a newer attempt took over'
                where table_id = own_table and application = own_application
                  and version = (proposal ->> 'version')::bigint and state = 'staged' and id <> own_id;
            end if;
            if adds then
                perform lake.enter_files_v1(own_id, own_table, (proposal ->> 'schema_id')::integer, proposal);
            end if;
            perform lake.enter_dependencies_v1(proposal, publishing is null);
        end if;
    exception
        when sqlstate 'LK001' then
            get stacked diagnostics answer = pg_exception_detail;
            return answer;
        when lock_not_available or deadlock_detected then
            return '{"outcome": "busy", "while_staging": true}';
    end;
    if publishing is not null then
        return lake.publish_v1(array[own_id], publishing);
    end if;
    return jsonb_build_object('outcome', 'staged', 'ahead', lake.ahead_v1(array[own_table], null));
end $$;

-- Ends the work with an answer: what it has done in its block is undone.
create or replace function lake.answer_v1(answer jsonb) returns void
language plpgsql as $$
begin
    raise exception using errcode = 'LK001', message = 'answered', detail = answer::text;
end $$;

-- What the files of a write are made by: a client that knows the table by this number need not ask again.
create or replace function lake.definition_v1(own lake."table") returns bigint
language sql stable as $$
    select hashtextextended(own.schema_id || ' ' || own.options::text || ' ' || own.bucket_mode || coalesce(own.bucket_depth, 0)
        || ' ' || coalesce(
        (select r.suite_hash from lake.gate_requirement r where r.table_id = own.id and r.released_at is null), ''), 0);
$$;

-- The commit itself, staged; false if it is there: the reply was lost, and whatever became of the commit and of its past
-- since, its files are the catalog's. Waits for whoever is just entering it.
create or replace function lake.enter_commit_v1(proposal jsonb, adds boolean) returns boolean
language plpgsql as $$
declare
    own_table constant bigint := proposal ->> 'table_id';
    own_definition constant bigint := proposal ->> 'definition';
    is_reclaimed boolean;
    is_changed boolean := false;
begin
    -- Has a vacuum announced that it deletes files which no commit names, and which may be as old as this work?
    select coalesce(t.orphans_before > (proposal ->> 'began_at')::timestamptz, false),
           own_definition is not null and lake.definition_v1(t) <> own_definition
    into is_reclaimed, is_changed
    from lake."table" t where t.id = own_table and t.dropped_at is null;
    if not found then
        perform lake.answer_v1('{"outcome": "table_missing"}');
    end if;
    if jsonb_typeof(proposal -> 'new_columns') = 'array' then
        insert into lake.table_schema (table_id, id, columns)
        values (own_table, (proposal ->> 'schema_id')::integer, proposal -> 'new_columns') on conflict do nothing;
    end if;
    insert into lake.commit (id, table_id, kind, state, base_snapshot_id, base_schema_id, schema_id, reads_whole_table,
                             reads_where, rows_from_base, restores, application, version, attempt, summary, properties,
                             keys_until, marks_run, reads_beneath)
    select p.id, p.table_id, p.kind, 'staged', p.base_snapshot_id, p.base_schema_id, p.schema_id, p.reads_whole_table,
           p.reads_where, coalesce(p.rows_from_base, false), p.restores, p.application, p.version,
           1 + coalesce((select max(c.attempt) from lake.commit c
                         where c.table_id = p.table_id and c.application = p.application and c.version = p.version
                           and c.state = 'staged'), 0),
           p.summary, p.properties - array['approved_by', 'approval_reason'], p.keys_until, p.marks_run,
           coalesce(p.reads_beneath, '{}')
    from jsonb_to_record(proposal) as p (
        id uuid, table_id bigint, kind text, base_snapshot_id bigint, base_schema_id integer, schema_id integer,
        reads_whole_table boolean, reads_where jsonb, rows_from_base boolean, restores bigint, application text,
        version bigint, summary jsonb, properties jsonb, keys_until bigint, marks_run integer,
        reads_beneath uuid[])
    on conflict (id) do nothing;
    if not found then
        return false;
    end if;
    perform lake.check_proposal_v1(proposal);
    -- Work that went by what the client remembered is done anew by what is so now; its moment, too, is a while ago.
    if is_changed or is_reclaimed and own_definition is not null then
        perform lake.answer_v1('{"outcome": "table_changed"}');
    end if;
    if adds and is_reclaimed then
        perform lake.answer_v1('{"outcome": "files_reclaimed"}');
    end if;
    return true;
end $$;

-- What the commit depends on is still there, and stays while it is staged: whoever lets snapshots expire comes before this
-- and is seen, or after and sees the commit.
create or replace function lake.check_past_v1(proposal jsonb) returns void
language plpgsql as $$
declare
    own_table constant bigint := proposal ->> 'table_id';
    base constant bigint := proposal ->> 'base_snapshot_id';
    has_read constant boolean := proposal ->> 'has_read';
begin
    if not has_read and jsonb_array_length(proposal -> 'removed_file_ids') = 0 then
        return;
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended('lake.expire ' || own_table, 0));
    if exists (select from lake.snapshot s
               where s.table_id = own_table and s.expired_at is not null
                 and (s.id between base and case when has_read then 9223372036854775807 else base end
                      or s.id = (proposal ->> 'restores')::bigint)) then
        perform lake.answer_v1('{"outcome": "past_expired"}');
    end if;
end $$;

-- Files that a commit will add. New partitions enter in the order of their keys, lest two writers wait for each other.
create or replace function lake.enter_files_v1(own_id uuid, own_table bigint, own_schema integer, proposal jsonb) returns void
language plpgsql as $$
begin
    perform lake.check_paths_v1(array(
        select p.path from jsonb_to_recordset(proposal -> 'partitions') as p (path text)
        union all
        select f.path from jsonb_to_recordset(proposal -> 'files') as f (path text)));
    if exists (select from jsonb_to_recordset(proposal -> 'files') as f (sequence bigint)
               join lake."table" t on t.id = own_table and f.sequence > t.head_id) then
        raise invalid_parameter_value using message = 'rows that were there are no newer than the head';
    end if;
    if exists (select from jsonb_to_recordset(proposal -> 'files') as f (path text)
               join lake.data_file d on d.table_id = own_table and d.path = f.path) then
        raise unique_violation using message = 'a file is written once, and another commit has one of these';
    end if;
    insert into lake.partition (table_id, key, path)
    select own_table, p.key, p.path from jsonb_to_recordset(proposal -> 'partitions') as p (key bytea[], path text)
    where not exists (select from lake.partition k where k.table_id = own_table and k.key = p.key)
    order by p.key
    on conflict (table_id, key) do nothing;
    insert into lake.data_file (table_id, commit_id, partition_id, path, depth, prefix, run, level, row_count,
                                delete_count, size_bytes, schema_id, sequence, lower_bounds, upper_bounds, null_counts)
    select own_table, own_id, k.id, f.path, f.depth, f.prefix, f.run, f.level, f.row_count, f.delete_count, f.size_bytes,
           own_schema, f.sequence, f.lower_bounds, f.upper_bounds, f.null_counts
    from jsonb_to_recordset(proposal -> 'partitions') as p (place integer, key bytea[])
    join lake.partition k on k.table_id = own_table and k.key = p.key
    join jsonb_to_recordset(proposal -> 'files') as f (
        path text, partition integer, depth integer, prefix bigint, run integer, level integer, row_count bigint,
        delete_count bigint, size_bytes bigint, sequence bigint, lower_bounds bytea[], upper_bounds bytea[],
        null_counts bigint[]) on f.partition = p.place;
end $$;

-- What the commit has read, and what it will take out. With `claims` no compaction takes that from now on: one that is
-- about to has either done so or will see this commit. An overwrite finds those anew that one has taken since it looked,
-- a rollback too; whoever has read them has to look again.
create or replace function lake.enter_dependencies_v1(proposal jsonb, claims boolean) returns void
language plpgsql as $$
declare
    own_id constant uuid := proposal ->> 'id';
    own_kind constant text := proposal ->> 'kind';
    file_ids bigint[] := array(select value::bigint from jsonb_array_elements_text(proposal -> 'removed_file_ids'));
begin
    if cardinality(file_ids) > 0 and exists (
               select from lake.commit c join lake.data_file f on f.table_id <> c.table_id
               where c.id = own_id and f.id = any(file_ids)) then
        raise invalid_parameter_value using message = 'a commit takes out files of its own table';
    end if;
    if own_kind = 'rollback' then
        file_ids := lake.aim_v1(own_id);
    else
        insert into lake.commit_removal (commit_id, file_id) select own_id, unnest(file_ids);
    end if;
    insert into lake.commit_read (commit_id, partition_id)
    select own_id, value::bigint from jsonb_array_elements_text(proposal -> 'read_partition_ids')
    union
    select own_id, f.partition_id from lake.data_file f
    where f.commit_id = own_id and (proposal ->> 'reads_own_partitions')::boolean
      -- What rows leave for those of an overwrite is not in its target.
      and (own_kind <> 'overwrite' or f.row_count > f.delete_count)
    on conflict do nothing;
    if not claims or own_kind = 'compact' or cardinality(file_ids) = 0 then
        return;
    end if;
    loop
        perform from lake.data_file f where f.id = any(file_ids) order by f.id for share;
        exit when not exists (
            select from lake.data_file f where f.id = any(file_ids) and f.removed_snapshot is not null);
        case own_kind
            when 'overwrite' then file_ids := lake.find_target_v1(own_id);
            when 'rollback' then file_ids := lake.aim_v1(own_id);
            else perform lake.answer_v1('{"outcome": "input_gone"}');
        end case;
    end loop;
end $$;

-- An overwrite takes out what is in its target at this moment; the ids of those files.
create or replace function lake.find_target_v1(own_id uuid) returns bigint[]
language plpgsql as $$
declare
    file_ids bigint[];
begin
    delete from lake.commit_removal where commit_id = own_id;
    with target as (
        insert into lake.commit_removal (commit_id, file_id)
        select c.id, f.id from lake.commit c join lake.data_file f on f.table_id = c.table_id
        where c.id = own_id and f.added_snapshot is not null and f.removed_snapshot is null
          and (c.reads_whole_table
               or f.partition_id in (select r.partition_id from lake.commit_read r where r.commit_id = c.id))
        returning file_id)
    select coalesce(array_agg(file_id), '{}') into file_ids from target;
    return file_ids;
end $$;
