-- Who may do what is told by grants alone (roles.sql): a right is the right to execute the function that stands for it
-- here. The rights: read, write, judge, maintain, own. Of the user who has logged in, whatever role it has taken on since.
create or replace function lake.has_right_v1(wanted text) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    stands_for constant text := case wanted
        when 'read' then 'lake.take_lease_v1(uuid, bigint, bigint, text, interval)'
        when 'write' then 'lake.overtake_appends_v1(bigint, text, bigint, text)'
        when 'judge' then 'lake.judge_v1(jsonb, text)'
        when 'maintain' then 'lake.expire_snapshots_v1(bigint, bigint[])'
    end;
begin
    if pg_has_role(session_user, (select n.nspowner from pg_namespace n where n.nspname = 'lake'), 'usage') then
        return true;
    end if;
    return stands_for is not null and has_function_privilege(session_user, stands_for, 'execute');
end $$;

-- Ends the work of a user who lacks the right; the detail names it to programs. And of one in whose transaction no
-- statement sees what others have committed since it began: checks would look at the past.
create or replace function lake.check_right_v1(wanted text) returns void
language plpgsql stable as $$
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise invalid_transaction_state using message = 'the catalog is changed in transactions that are READ COMMITTED';
    end if;
    if not lake.has_right_v1(wanted) then
        raise insufficient_privilege using message = format('user %s lacks the right to %s', session_user, wanted),
                                           detail = wanted;
    end if;
end $$;

-- The right that it takes to stage, change, publish and give up a commit of a kind. A compaction and a change of the
-- schema pass every gate: they are not for everybody who writes.
create or replace function lake.right_of_v1(kind text) returns text
language plpgsql immutable as $$
begin
    case
        when kind in ('append', 'upsert', 'overwrite', 'replace', 'delete', 'rollback') then return 'write';
        when kind = 'compact' then return 'maintain';
        when kind = 'evolve' then return 'own';
        else raise invalid_parameter_value using message = format('there are no commits of the kind %s', kind);
    end case;
end $$;

-- Rows come with columns that the table has not, or with wider types: nothing else of the schema changes with them. What
-- changes the schema brings no rows. Ids are those that were reserved, and a schema version is what was first said of it.
create or replace function lake.check_proposal_v1(proposal jsonb) returns void
language plpgsql stable as $$
declare
    own_table constant bigint := proposal ->> 'table_id';
    base constant integer := proposal ->> 'base_schema_id';
    wanted constant integer := proposal ->> 'schema_id';
    home lake."table";
    columns jsonb;
begin
    if proposal ->> 'kind' = 'evolve' and (jsonb_array_length(proposal -> 'files') > 0
                                           or jsonb_array_length(proposal -> 'removed_file_ids') > 0) then
        raise invalid_parameter_value using message = 'a change of the schema brings no rows and takes none away';
    end if;
    if proposal ->> 'kind' = 'rollback' and (jsonb_array_length(proposal -> 'files') > 0
                                             or jsonb_array_length(proposal -> 'removed_file_ids') > 0
                                             or wanted <> base) then
        raise invalid_parameter_value using message = 'a rollback brings back what a snapshot held, and nothing else';
    end if;
    if wanted = base then
        return;
    end if;
    select * into home from lake."table" t where t.id = own_table;
    select s.columns into columns from lake.table_schema s where s.table_id = own_table and s.id = wanted;
    if wanted > home.last_schema_id
       or jsonb_typeof(proposal -> 'new_columns') = 'array' and columns <> proposal -> 'new_columns' then
        raise invalid_parameter_value using message = format('the schema version %s is not this commit''s', wanted);
    end if;
    if proposal ->> 'kind' <> 'evolve' and not lake.extends_v1(
        (select s.columns from lake.table_schema s where s.table_id = own_table and s.id = base),
        columns, home.last_column_id) then
        -- What replaces all rows may replace the columns, too, if it may change them at all.
        if proposal ->> 'kind' <> 'overwrite' or not (proposal ->> 'reads_whole_table')::boolean
           or exists (select from unnest(home.primary_key || home.partition_by || home.sequence_by) as role (id)
                      where not columns @> jsonb_build_array(jsonb_build_object('id', role.id))) then
            raise invalid_parameter_value
                using message = 'rows extend the schema of their table, and change nothing else in it';
        end if;
        perform lake.check_right_v1(lake.right_of_v1('evolve'));
    end if;
end $$;

-- Whether columns are those of before, some wider, and new ones, whose ids go up to the last that was reserved.
create or replace function lake.extends_v1(before jsonb, after jsonb, last_id integer) returns boolean
language plpgsql immutable as $$
begin
    return not exists (
            select from jsonb_to_recordset(before) as was (id integer, name text, type text, nullable boolean, stored_as text)
            left join jsonb_to_recordset(after) as now (id integer, name text, type text, nullable boolean, stored_as text)
                on now.id = was.id
            where now.id is null or now.name <> was.name or now.stored_as is distinct from was.stored_as
               or was.nullable and not now.nullable
               or now.type <> was.type and not lake.may_widen_v1(was.type, now.type))
        and not exists (
            select from jsonb_to_recordset(after) as now (id integer, name text, type text, nullable boolean)
            where not exists (select from jsonb_to_recordset(before) as was (id integer) where was.id = now.id)
              and (now.id not between 1 and last_id or not now.nullable or now.type !~
                   '^(boolean|tinyint|smallint|int|bigint|float|double|string|binary|date|timestamp|timestamp_ntz'
                   '|decimal[(]\d+, *\d+[)]|(array|map|struct)<.*>)$'))
        and (select count(*) = count(distinct lower(now.name)) and count(*) = count(distinct now.id)
             from jsonb_to_recordset(after) as now (id integer, name text));
end $$;

-- Whether one type may be a wider form of another. Of nested types it is the client that looks inside.
create or replace function lake.may_widen_v1(narrow text, wide text) returns boolean
language plpgsql immutable as $$
declare
    integers constant text[] := array['tinyint', 'smallint', 'int', 'bigint'];
    nested constant text[] := array['struct', 'array', 'map'];
    old_digits constant text[] := regexp_match(narrow, '^decimal[(](\d+), *(\d+)[)]$');
    new_digits constant text[] := regexp_match(wide, '^decimal[(](\d+), *(\d+)[)]$');
begin
    return coalesce(array_position(integers, narrow) < array_position(integers, wide), false)
        or narrow = 'float' and wide = 'double'
        or coalesce(old_digits[1]::integer - old_digits[2]::integer <= new_digits[1]::integer - new_digits[2]::integer
                    and old_digits[2]::integer <= new_digits[2]::integer, false)
        or substring(narrow from '^[a-z]+') = any(nested)
           and substring(narrow from '^[a-z]+') = substring(wide from '^[a-z]+');
end $$;

-- Paths lie below the folder of their table: what is in the catalog is deleted in the end.
create or replace function lake.check_paths_v1(paths text[]) returns void
language plpgsql immutable as $$
declare
    bad text;
begin
    select path into bad from unnest(paths) as given (path)
    where path ~ '(^|/)[.][.]?(/|$)|^/|^[A-Za-z0-9+.-]+://' limit 1;
    if found then
        raise invalid_parameter_value using message = format('the path %s leads out of its table', bad);
    end if;
end $$;
