-- The commit protocol as functions; what it needs to know of commits that were amended, of verdicts on several commits
-- together, and of those who wait to publish. All that is published together has one moment.
create unlogged table lake.waiting (
    place bigint generated always as identity primary key,
    table_id bigint not null,
    turn uuid not null,
    is_alone boolean not null,
    until timestamptz not null,
    unique (turn, table_id)
);
alter table lake.commit add column amendment integer not null default 0;
alter table lake.verdict
    add column amendment integer not null default 0,
    add column beneath uuid[] not null default '{}';
alter table lake.snapshot drop constraint snapshot_table_id_committed_at_key;
-- Their schema versions name the table as well, and are not changed by every publish.
alter table lake.commit drop constraint commit_table_id_fkey;
alter table lake.snapshot drop constraint snapshot_table_id_fkey;

-- Clients of the version before publish by SQL of their own, and go by the name of a required gate alone. What they do not
-- know of verdicts is checked here, until they are shut out.
create function lake.admit_publish_v1() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    own lake.commit;
    home lake."table";
    answer jsonb;
begin
    select * into own from lake.commit c where c.id = new.commit_id;
    select * into home from lake."table" t where t.id = new.table_id;
    if own.approved_by is null then
        perform lake.check_verdicts_v1(own, home);
        perform lake.check_staleness_v1(own, home);
    end if;
    return new;
exception
    when sqlstate 'LK001' then
        get stacked diagnostics answer = pg_exception_detail;
        raise exception using message = format(
            'commit %s of %s has no verdict of the suite that gate %s stands for now (%s): judge and publish it with the'
            ' newer lakelib that this catalog was migrated for',
            answer ->> 'commit_id', answer ->> 'table_name', answer ->> 'gate', answer ->> 'outcome');
end $$;

create trigger snapshot_admitted before insert on lake.snapshot for each row
when (coalesce(current_setting('lake.publishing', true), '') = '') execute function lake.admit_publish_v1();
