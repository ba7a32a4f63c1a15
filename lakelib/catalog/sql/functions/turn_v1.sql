-- A place in the line of those who wait to publish to a table, for so long at most unless it is asked for again: of one
-- who is to be alone then. How many are before him; with none he has his turn, and whoever else publishes waits.
create or replace function lake.turn_v1(own_table bigint, own_turn uuid, turn_ms integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not lake.has_right_v1('maintain') then
        perform lake.check_right_v1('write');
    end if;
    perform lake.wait_v1(own_table, own_turn, true, turn_ms);
    return (select count(*) from lake.waiting w
            join lake.waiting own on own.table_id = w.table_id and own.turn = own_turn and w.place < own.place
            where w.table_id = own_table and w.until > clock_timestamp());
end $$;

-- Leaves all lines.
create or replace function lake.release_turn_v1(own_turn uuid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not lake.has_right_v1('maintain') then
        perform lake.check_right_v1('write');
    end if;
    delete from lake.waiting w where w.turn = own_turn;
end $$;

-- Enters the line, or stays in it. Who has not asked for too long has left it.
create or replace function lake.wait_v1(own_table bigint, own_turn uuid, alone boolean, wait_ms integer) returns void
language plpgsql as $$
begin
    delete from lake.waiting w
    where w.place in (select late.place from lake.waiting late
                      where late.table_id = own_table and late.until < clock_timestamp() for update skip locked);
    insert into lake.waiting (table_id, turn, is_alone, until)
    values (own_table, own_turn, alone, clock_timestamp() + least(wait_ms, 10000) * interval '1 millisecond')
    on conflict (turn, table_id) do update set until = excluded.until, is_alone = excluded.is_alone;
end $$;

-- How many are to be alone before a publisher who waits, or has just come, for one of these tables.
create or replace function lake.ahead_v1(own_tables bigint[], own_turn uuid) returns integer
language plpgsql as $$
begin
    if not exists (select from lake.waiting) then
        return 0;
    end if;
    return (select count(*) from lake.waiting w
            where w.table_id = any(own_tables) and w.is_alone and w.until > clock_timestamp()
              and w.turn is distinct from own_turn
              and w.place < coalesce((select own.place from lake.waiting own
                                      where own.table_id = w.table_id and own.turn = own_turn), 9223372036854775807));
end $$;
