-- A consumer of a table, as it is then: a new one begins after the snapshot `start`, and keeps what it has not read for as
-- long as is told, or is usual. One that is there stays where it is; what is told of how long it keeps counts. Nothing
-- where the table or the snapshot is gone. Waits for an expiry under way, and sees what that has done.
create or replace function lake.make_consumer_v1(own_table bigint, own_name text, start bigint, told interval, usual interval)
returns setof lake.consumer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform lake.check_right_v1('write');
    perform pg_advisory_xact_lock_shared(hashtextextended('lake.expire ' || own_table, 0));
    return query
    update lake.consumer c set keep_for = coalesce(told, c.keep_for)
    from lake."table" t
    where c.table_id = own_table and c.name = own_name and t.id = c.table_id and t.dropped_at is null
    returning c.*;
    if found then
        return;
    end if;
    return query
    insert into lake.consumer as c (table_id, name, position, keep_for)
    select t.id, own_name, start, coalesce(told, usual) from lake."table" t
    where t.id = own_table and t.dropped_at is null and lake.is_readable_v1(own_table, start)
    on conflict (table_id, name) do update set keep_for = coalesce(told, c.keep_for)
    returning c.*;
end $$;

-- Whether the table can be read as it was then; before the first snapshot it was empty.
create or replace function lake.is_readable_v1(own_table bigint, own_snapshot bigint) returns boolean
language plpgsql stable as $$
begin
    return own_snapshot = 0 or exists (
        select from lake.snapshot s where s.table_id = own_table and s.id = own_snapshot and s.expired_at is null);
end $$;

-- The end of a consumer: it holds nothing any more.
create or replace function lake.remove_consumer_v1(own_table bigint, own_name text) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not lake.has_right_v1('maintain') then
        perform lake.check_right_v1('write');
    end if;
    return query delete from lake.consumer c where c.table_id = own_table and c.name = own_name returning c.name;
end $$;

-- Commits become snapshots, as `publish_v1` says, and consumers move on, in one transaction: all of it or nothing. Without
-- commits the consumers alone. `advances` are objects of table_id, name, from (the position that was read), to, backwards
-- (whether that may lie before), and move: who asks again with it, for the reply was lost, is answered the same.
--
-- The outcome is that of `publish_v1`, or says of the first consumer that cannot move why, and nothing was changed:
-- consumer_missing, consumer_moved, consumer_beyond_head, consumer_backwards, consumer_past_expired. Where all commits were
-- published before, consumers that have come as far have moved with them.
create or replace function lake.publish_advancing_v1(commit_ids uuid[], publishing jsonb, advances jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    differs constant text := lake.check_identity_v1((publishing ->> 'epoch')::bigint);
    answer jsonb := '{"outcome": "published", "commits": []}';
begin
    perform lake.check_right_v1('write');
    if differs is not null then
        return jsonb_build_object('outcome', 'identity_differs', 'differs', differs);
    end if;
    perform set_config('lock_timeout', publishing ->> 'patience_ms', true);
    begin
        -- Before the consumers: whoever makes one does so in this order.
        perform pg_advisory_xact_lock_shared(hashtextextended('lake.expire ' || back.table_id, 0))
        from (select distinct a.table_id from jsonb_to_recordset(advances) as a (table_id bigint, backwards boolean)
              where a.backwards order by a.table_id) back;
        -- Before the tables, and nobody locks a consumer who holds one: in one order, so that no two wait for each other.
        perform from lake.consumer c
        join jsonb_to_recordset(advances) as a (table_id bigint, name text) on a.table_id = c.table_id and a.name = c.name
        order by c.table_id, c.name for no key update of c;
        perform lake.check_advances_v1(advances, lake.are_done_v1(commit_ids));
        if cardinality(commit_ids) > 0 then
            answer := lake.publish_v1(commit_ids, publishing);
        end if;
        if answer ->> 'outcome' = 'published' then
            update lake.consumer c
            set position = a."to", move = a.move, advanced_at = clock_timestamp(), advanced_by = session_user
            from jsonb_to_recordset(advances) as a (
                table_id bigint, name text, "from" bigint, "to" bigint, backwards boolean, move uuid)
            where c.table_id = a.table_id and c.name = a.name and c.position = a."from" and c.move is distinct from a.move
              and (a."to" >= a."from" or a.backwards);
        end if;
        return answer;
    exception
        when sqlstate 'LK001' then
            get stacked diagnostics answer = pg_exception_detail;
            return answer;
        when lock_not_available or deadlock_detected then
            return '{"outcome": "busy"}';
    end;
end $$;

-- Whether there are commits, and all of them were published before, or the same work by others.
create or replace function lake.are_done_v1(commit_ids uuid[]) returns boolean
language plpgsql as $$
begin
    return cardinality(commit_ids) > 0 and not exists (
        select from lake.commit c
        where c.id = any(commit_ids) and c.state <> 'published'
          and (c.application is null or c.state = 'rejected' or lake.find_done_v1(c) is null));
end $$;

-- Ends the work with an answer about the first consumer that cannot move. One that has done so, by this very move or with
-- commits that were published before, need not; whether one has gone back with them nobody can tell.
create or replace function lake.check_advances_v1(advances jsonb, is_replay boolean) returns void
language plpgsql as $$
declare
    standstill jsonb;
begin
    select jsonb_build_object('outcome', rule.outcome, 'consumer', a.name, 'table_id', a.table_id,
                              'table_name', t.namespace || '.' || t.name, 'position', c.position, 'from', a."from",
                              'to', a."to", 'head', t.head_id) into standstill
    from rows from (jsonb_to_recordset(advances) as (
        table_id bigint, name text, "from" bigint, "to" bigint, backwards boolean, move uuid))
        with ordinality as a (table_id, name, "from", "to", backwards, move, place)
    left join lake."table" t on t.id = a.table_id
    left join lake.consumer c on c.table_id = a.table_id and c.name = a.name and t.dropped_at is null
    cross join lateral (select case
        when c.name is null then 'consumer_missing'
        when c.move = a.move or is_replay and (c.position = a."to" or c.position > a."to" and not a.backwards) then null
        when c.position <> a."from" then 'consumer_moved'
        when a."to" > t.head_id then 'consumer_beyond_head'
        when a."to" >= c.position then null
        when not a.backwards then 'consumer_backwards'
        when not lake.is_readable_v1(a.table_id, a."to") then 'consumer_past_expired'
    end) as rule (outcome)
    where rule.outcome is not null order by a.place limit 1;
    if found then
        perform lake.answer_v1(standstill);
    end if;
end $$;
