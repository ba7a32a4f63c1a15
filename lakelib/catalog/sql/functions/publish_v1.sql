-- All commits become snapshots in one instant, in the order given, or none does: lock, check, stamp, with no client in
-- between. `publishing` says how: patience_ms for which to wait for the tables; rebase, if overwrites replace whatever is in
-- their target by now; approved_by and approval_reason, if a person overrules verdicts; settled, which partitions the
-- predicates of commits look at that nobody had asked about, as {commit: {read: […], unread: […]}}; turn, by
-- which it waits in line, for turn_ms, if others are to be alone before; epoch, at which the client has seen the lake;
-- asks_changes, if the client is to hear first of which changes the commits were made: it moves consumers with them.
--
-- The outcome is published, with a snapshot for each commit (of another commit, if that had done the same work), and
-- whether files of done marks are left to delete; and whether somebody listens, who is to be told of it. All others change nothing: identity_differs, commit_missing,
-- table_missing, rejected, verdict_missing, verdict_of_another_suite, verdict_not_passed, verdict_stale, fenced, conflict
-- (with all its reasons), busy (with how many are ahead), unsettled: the client has to say of which of these
-- partitions a commit's predicate may be TRUE; and made_of_changes: with what each commit says that it was made of.
create or replace function lake.publish_v1(commit_ids uuid[], publishing jsonb) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    own_turn constant uuid := publishing ->> 'turn';
    own_tables bigint[];
    own_heads bigint[];
    takes_out boolean;
    is_heard boolean := false;
    ahead integer;
    stamp timestamptz;
    answer jsonb;
    answers jsonb := '[]';
    differs text;
begin
    if publishing ->> 'approved_by' is not null then
        perform lake.check_right_v1('judge');
    end if;
    differs := lake.check_identity_v1((publishing ->> 'epoch')::bigint);
    if differs is not null then
        return jsonb_build_object('outcome', 'identity_differs', 'differs', differs);
    end if;
    perform set_config('lock_timeout', publishing ->> 'patience_ms', true);
    begin
        select locked.* into own_tables, own_heads, takes_out, stamp
        from lake.lock_tables_v1(commit_ids, (publishing ->> 'asks_changes')::boolean) locked;
        if takes_out then
            -- As whoever stages locks them, in the order of their ids: now it is known which staged commits are to take
            -- them out.
            perform from lake.data_file f
            where f.id in (select r.file_id from lake.commit_removal r where r.commit_id = any(commit_ids))
            order by f.id for no key update;
        end if;
        if cardinality(own_tables) is distinct from cardinality(commit_ids) then
            perform lake.check_known_v1(commit_ids);
        end if;
        ahead := lake.ahead_v1(own_tables, own_turn);
        if ahead > 0 and exists (
                select from lake.commit c where c.id = any(commit_ids) and c.state <> 'published') then
            -- Who replaces files that are gone waits in vain.
            perform lake.check_conflicts_v1(c, t, false) from lake.commit c join lake."table" t on t.id = c.table_id
            where c.id = any(commit_ids) and c.kind = 'compact' and c.state = 'staged';
            perform lake.answer_v1(jsonb_build_object('outcome', 'busy', 'ahead', ahead));
        end if;
        for place in 1 .. cardinality(commit_ids) loop
            answers := answers || lake.publish_one_v1(commit_ids[place], commit_ids, stamp, publishing);
        end loop;
        if exists (select from lake.waiting) then
            delete from lake.waiting w where w.table_id = any(own_tables) and w.turn = own_turn;
        end if;
        if exists (select from lake.listener l where l.until > clock_timestamp()) then
            is_heard := exists (
                select from lake.listener l
                where l.until > clock_timestamp() and (l.table_id is null or l.table_id = any(own_tables)));
        end if;
        return jsonb_build_object('outcome', 'published', 'commits', answers, 'is_heard', is_heard);
    exception
        when sqlstate 'LK001' then
            get stacked diagnostics answer = pg_exception_detail;
        when lock_not_available or deadlock_detected then
            return '{"outcome": "busy"}';
    end;
    if answer ->> 'outcome' = 'busy' and own_turn is not null then
        perform lake.wait_v1(c.table_id, own_turn, false, (publishing ->> 'turn_ms')::integer)
        from (select distinct table_id from lake.commit where id = any(commit_ids) order by table_id) c;
    end if;
    return answer;
end $$;

-- Holds the tables of commits, and says which they are, and their heads, in one order; whether files are to be taken out;
-- and the moment of what is published now. With `asks_changes` it ends with what the commits were made of, if that is told.
-- All is looked up by id: a plan for any number of commits is as good as one for these, and made once.
create or replace function lake.lock_tables_v1(
    commit_ids uuid[], asks_changes boolean, out table_ids bigint[], out heads bigint[], out takes_out boolean,
    out stamp timestamptz)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
    own record;
begin
    for own in select c.kind, c.table_id, c.application, c.state <> 'published' and c.properties ? 'changes' as is_made_of
               from lake.commit c where c.id = any(commit_ids) order by c.table_id, c.application loop
        perform lake.check_right_v1(lake.right_of_v1(own.kind));
        -- Consumers are locked before the tables, by another call.
        if own.is_made_of and asks_changes then
            perform lake.tell_changes_v1(commit_ids);
        end if;
        -- Before the tables: whoever stages a newer attempt holds this, and the older one, and may wait for the table.
        if own.application is not null then
            perform pg_advisory_xact_lock(hashtextextended(own.table_id || ' ' || own.application, 0));
        end if;
    end loop;
    -- In the order of table ids, so that no two publishers wait for each other. Rows that only refer to the table or
    -- the commit may be inserted meanwhile: whoever stages does not wait for a publisher.
    select array_agg(locked.table_id), array_agg(locked.head_id) into table_ids, heads from (
        select t.id as table_id, t.head_id from lake.commit c join lake."table" t on t.id = c.table_id
        where c.id = any(commit_ids) order by t.id, c.id for no key update of t, c) locked;
    takes_out := exists (select from lake.commit_removal r where r.commit_id = any(commit_ids));
    -- One moment for all, above that of every head. A head that lies in the future, since a clock was ahead when it was
    -- made, is none to wait for.
    select greatest(clock_timestamp(), max(s.committed_at) + interval '1 microsecond') into stamp
    from unnest(table_ids, heads) as head (table_id, id) join lake.snapshot s using (table_id, id)
    where s.committed_at < clock_timestamp() + interval '1 minute';
end $$;

-- Ends the publish with what those of the commits were made of that are not published.
create or replace function lake.tell_changes_v1(commit_ids uuid[]) returns void
language plpgsql as $$
begin
    perform lake.answer_v1((
        select jsonb_build_object('outcome', 'made_of_changes', 'changes', jsonb_object_agg(c.id, c.properties -> 'changes'))
        from lake.commit c where c.id = any(commit_ids) and c.state <> 'published' and c.properties ? 'changes'));
end $$;

create or replace function lake.check_known_v1(commit_ids uuid[]) returns void
language plpgsql as $$
declare
    missing uuid;
begin
    select wanted.id into missing from unnest(commit_ids) as wanted (id)
    where not exists (select from lake.commit c where c.id = wanted.id) limit 1;
    if missing is not null then
        perform lake.answer_v1(jsonb_build_object('outcome', 'commit_missing', 'commit_id', missing));
    end if;
end $$;

-- One commit of those that are published together, under the locks of their tables.
create or replace function lake.publish_one_v1(own_id uuid, commit_ids uuid[], stamp timestamptz, publishing jsonb) returns jsonb
language plpgsql as $$
declare
    own lake.commit;
    home lake."table";
    is_approved constant boolean := publishing ->> 'approved_by' is not null;
    done_id bigint;
    leaves_files boolean := false;
begin
    select * into own from lake.commit c where c.id = own_id;
    if own.state = 'published' then
        return lake.told_v1(own_id, own.table_id, own.snapshot_id, false);
    end if;
    select * into home from lake."table" t where t.id = own.table_id;
    if home.dropped_at is not null then
        perform lake.refuse_v1(own, home, 'table_missing');
    end if;
    if own.application is not null and own.state <> 'rejected' then
        done_id := lake.find_done_v1(own);
        if done_id is not null then
            perform lake.check_order_v1(own, home, done_id, commit_ids, stamp);
            update lake.commit c
            set state = 'expired', decided_at = clock_timestamp(), reason = 'the work was published already'
            where c.id = own_id and c.state = 'staged';
            return lake.told_v1(own_id, own.table_id, done_id, false);
        end if;
    end if;
    perform lake.check_state_v1(own, home, is_approved);
    perform lake.settle_reads_v1(own, home, publishing -> 'settled' -> own_id::text);
    if not is_approved then
        perform lake.check_verdicts_v1(own, home);
    end if;
    perform lake.check_conflicts_v1(own, home, own.kind = 'overwrite' and (publishing ->> 'rebase')::boolean);
    if not is_approved then
        perform lake.check_staleness_v1(own, home);
    else
        update lake.commit c
        set approved_by = publishing ->> 'approved_by', approval_reason = publishing ->> 'approval_reason',
            properties = c.properties || jsonb_build_object('approved_by', publishing ->> 'approved_by',
                                                            'approval_reason', publishing ->> 'approval_reason')
        where c.id = own_id;
    end if;
    if own.kind = 'overwrite' and own.base_snapshot_id < home.head_id then
        perform lake.rebase_v1(own_id, (publishing ->> 'rebase')::boolean);
    end if;
    if own.kind = 'rollback' and own.base_snapshot_id < home.head_id then
        perform lake.aim_anew_v1(own_id, home.head_id);
    end if;
    perform lake.become_snapshot_v1(own_id, home.head_id + 1, stamp);
    if own.kind <> 'compact' then
        leaves_files := lake.reset_marks_v1(own_id, own.table_id);
    end if;
    return lake.told_v1(own_id, own.table_id, home.head_id + 1, leaves_files);
end $$;

-- What a client hears of a commit that was published, now or before, by itself or by another attempt.
create or replace function lake.told_v1(own_id uuid, own_table bigint, snapshot_id bigint, leaves_files boolean) returns jsonb
language plpgsql as $$
begin
    return (select jsonb_build_object('commit_id', own_id, 'table_id', own_table, 'leaves_files', leaves_files,
                                      'snapshot', to_jsonb(s))
            from lake.snapshot s where s.table_id = own_table and s.id = snapshot_id);
end $$;

-- Ends the publish with an answer about one of its commits.
create or replace function lake.refuse_v1(own lake.commit, home lake."table", outcome text, facts jsonb default '{}') returns void
language plpgsql as $$
begin
    perform lake.answer_v1(facts || jsonb_build_object(
        'outcome', outcome, 'commit_id', own.id, 'table_name', home.namespace || '.' || home.name,
        'state', own.state, 'reason', own.reason, 'base', own.base_snapshot_id, 'head', home.head_id,
        'amendment', own.amendment));
end $$;

-- The snapshot that did the commit's work: another attempt's of this version, or the first later one that made it obsolete.
create or replace function lake.find_done_v1(own lake.commit) returns bigint
language plpgsql as $$
begin
    return (select c.snapshot_id from lake.commit c
            where c.table_id = own.table_id and c.application = own.application and c.version >= own.version
              and c.state = 'published'
            order by c.version limit 1);
end $$;

-- A commit whose work another one of the same transaction has made obsolete was meant to be published before it.
create or replace function lake.check_order_v1(own lake.commit, home lake."table", done_id bigint, commit_ids uuid[],
                                    stamp timestamptz) returns void
language plpgsql as $$
declare
    other lake.commit;
begin
    select c.* into other from lake.snapshot s join lake.commit c on c.id = s.commit_id
    where s.table_id = own.table_id and s.id = done_id and s.committed_at = stamp and c.id = any(commit_ids);
    if found then
        perform lake.check_state_v1(own, home, false);
        perform lake.refuse_v1(own, home, 'conflict', jsonb_build_object(
            'reasons', '["version_order"]'::jsonb, 'application', own.application, 'version', own.version,
            'other_version', other.version));
    end if;
end $$;

-- A commit is decided once. A person overrules rejections, and nothing else: not where the same work was published, and
-- not where a newer attempt stands.
create or replace function lake.check_state_v1(own lake.commit, home lake."table", is_approved boolean) returns void
language plpgsql as $$
declare
    newer uuid;
begin
    if own.state = 'expired' then
        perform lake.refuse_v1(own, home, 'fenced', '{"why": "ended"}');
    end if;
    if own.state = 'rejected' and not is_approved then
        perform lake.refuse_v1(own, home, 'rejected');
    end if;
    if own.state <> 'rejected' or own.application is null then
        return;
    end if;
    if lake.find_done_v1(own) is not null then
        perform lake.refuse_v1(own, home, 'fenced', '{"why": "published"}');
    end if;
    select c.id into newer from lake.commit c
    where c.table_id = own.table_id and c.application = own.application and c.version = own.version
      and c.state <> 'published' and c.state in ('staged', 'rejected') and c.staged_at > own.staged_at
    order by c.staged_at desc limit 1;
    if found then
        perform lake.refuse_v1(own, home, 'fenced', jsonb_build_object('why', 'newer', 'newer', newer));
    end if;
end $$;

-- A commit that read wherever a predicate may be TRUE has read the partitions, too, that came into being since. Which of
-- them these are only the client can tell; it is asked until it has been told of all.
create or replace function lake.settle_reads_v1(own lake.commit, home lake."table", settled jsonb) returns void
language plpgsql as $$
declare
    unsettled jsonb;
begin
    if own.reads_where is null then
        return;
    end if;
    insert into lake.commit_read (commit_id, partition_id)
    select own.id, value::bigint from jsonb_array_elements_text(settled -> 'read') on conflict do nothing;
    select jsonb_agg(jsonb_build_object('id', p.id, 'key', p.key)) into unsettled from lake.partition p
    where p.id in (select f.partition_id from lake.data_file f
                   where f.table_id = own.table_id and f.added_snapshot > own.base_snapshot_id
                     and f.sequence > own.base_snapshot_id
                   union all
                   select lake.rolled_back_v1(own.table_id, own.base_snapshot_id))
      and not exists (select from lake.commit_read r where r.commit_id = own.id and r.partition_id = p.id)
      and not coalesce(settled -> 'unread' @> to_jsonb(p.id), false);
    if unsettled is not null then
        perform lake.refuse_v1(own, home, 'unsettled', jsonb_build_object(
            'reads_where', own.reads_where, 'partition_by', home.partition_by, 'partitions', unsettled));
    end if;
end $$;

-- What has happened since a commit was made, where it looked. An earlier commit of the same transaction counts, unless it
-- was made from that one's rows, too: then it counts that those are not published. A
-- compaction's files hold rows that were there: those with a sequence up to the base are no rows added, and what a
-- compaction takes out is no row removed. Who takes files out knows what lies beneath them, too: a rollback may have put
-- something there.
create or replace function lake.happened_v1(own lake.commit, out input_gone boolean, out input_claimed boolean,
                                 out rows_added boolean, out rows_removed boolean, out rolled_back boolean)
language plpgsql as $$
begin
    input_gone := false;
    input_claimed := false;
    rows_added := false;
    rows_removed := false;
    rolled_back := false;
    if exists (select from lake.commit_removal r where r.commit_id = own.id) then
        input_gone := exists (
            select from lake.commit_removal r join lake.data_file f on f.id = r.file_id
            where r.commit_id = own.id and f.removed_snapshot is not null);
        input_claimed := own.kind = 'compact' and exists (
            select from lake.commit_removal r
            join lake.commit_removal o on o.file_id = r.file_id
            join lake.commit other on other.id = o.commit_id
            where r.commit_id = own.id and other.state = 'staged' and other.kind <> 'compact');
    end if;
    if own.reads_whole_table or own.rows_from_base then
        rows_added := exists (
            select from lake.data_file f where f.table_id = own.table_id
              and f.added_snapshot > own.base_snapshot_id and f.sequence > own.base_snapshot_id
              and f.commit_id <> all(own.reads_beneath));
        rows_removed := exists (
            select from lake.data_file f where f.table_id = own.table_id and f.removed_snapshot > own.base_snapshot_id
              and not exists (select from lake.snapshot s where s.table_id = f.table_id and s.id = f.removed_snapshot
                              and s.kind = 'compact')
              and not exists (select from lake.commit c where c.id = any(own.reads_beneath)
                              and c.snapshot_id = f.removed_snapshot))
            or exists (select from unnest(own.reads_beneath) as b (id)
                       where not exists (select from lake.commit c where c.id = b.id and c.state = 'published'));
    elsif exists (select from lake.commit_read r where r.commit_id = own.id) then
        rows_added := exists (
            select from lake.commit_read r join lake.data_file f on f.partition_id = r.partition_id
            where r.commit_id = own.id
              and f.added_snapshot > own.base_snapshot_id and f.sequence > own.base_snapshot_id);
        rows_removed := exists (
            select from lake.commit_read r join lake.data_file f on f.partition_id = r.partition_id
            where r.commit_id = own.id and f.removed_snapshot > own.base_snapshot_id
              and not exists (select from lake.snapshot s where s.table_id = f.table_id and s.id = f.removed_snapshot
                              and s.kind = 'compact'));
    end if;
    if exists (select from lake.snapshot s where s.table_id = own.table_id and s.id > own.base_snapshot_id
                 and s.kind = 'rollback') then
        rolled_back := exists (
            select from lake.rolled_back_v1(own.table_id, own.base_snapshot_id) as b (partition_id)
            where own.reads_whole_table or own.rows_from_base
               or b.partition_id in (select r.partition_id from lake.commit_read r where r.commit_id = own.id
                                     union all
                                     select f.partition_id from lake.commit_removal r
                                     join lake.data_file f on f.id = r.file_id where r.commit_id = own.id));
    end if;
end $$;

-- The rules of conflict, one line each.
create or replace function lake.check_conflicts_v1(own lake.commit, home lake."table", rebases boolean) returns void
language plpgsql as $$
declare
    happened record;
    keys constant text := lake.keys_overtaken_v1(own, home);
    reasons jsonb;
begin
    -- Most commits only bring rows.
    if keys is null and own.schema_id = own.base_schema_id and not own.reads_whole_table and not own.rows_from_base
       and not exists (select from lake.commit_removal r where r.commit_id = own.id)
       and not exists (select from lake.commit_read r where r.commit_id = own.id) then
        return;
    end if;
    happened := lake.happened_v1(own);
    select jsonb_agg(rule.reason order by rule.place) into reasons
    from (values
        -- Readers map columns by id: a commit that leaves the schema alone fits every later one.
        -- What a rollback brings back was looked at by the schema of its base.
        (1, 'schema_changed', (own.schema_id <> own.base_schema_id or own.kind = 'rollback')
                              and home.schema_id <> own.base_schema_id),
        -- A compaction waits for whoever is to take out a file that it replaces.
        (2, 'input_claimed', happened.input_claimed),
        -- An overwrite does without the files that it was to take out, if compactions alone have: their files are found.
        -- So does a rollback.
        (3, 'input_gone', happened.input_gone and not rebases
                          and (own.kind not in ('overwrite', 'rollback') or happened.rows_removed)),
        -- What was made from rows does not know those that have come since.
        (4, 'rows_added', happened.rows_added and not rebases),
        -- Where rows have an order of their own, a mark that outlives its row would hide later ones. What was made from
        -- rows that are gone may not be what would be made now. A rollback undoes what was there when it was made.
        (5, 'rows_removed', happened.rows_removed and not rebases
                            and (cardinality(home.sequence_by) > 0 or own.rows_from_base or own.kind = 'rollback')),
        -- A rollback brings old rows, which were not there, and uncovers others.
        (6, 'rolled_back', happened.rolled_back and not rebases),
        -- Where a key is in one partition, a commit has looked in the others for those of its rows.
        (7, keys, keys is not null)
    ) as rule (place, reason, holds) where rule.holds;
    if reasons is not null then
        perform lake.refuse_v1(own, home, 'conflict', jsonb_build_object('reasons', reasons));
    end if;
end $$;

-- Of a table in which a key is in one partition: whether rows have come since a commit has looked for its keys
-- (`keys_added`), or have gone, or come back, on which it went by (`keys_lost`). Where versions have no order of their own,
-- what it brings is newer than all that was there. A commit that was staged before the table was such a one has not looked.
create or replace function lake.keys_overtaken_v1(own lake.commit, home lake."table") returns text
language plpgsql as $$
begin
    if not coalesce((home.options ->> 'cross_partition')::boolean, false)
       or own.kind in ('compact', 'evolve', 'rollback')
       or own.kind = 'delete' and own.keys_until is null
       or own.kind = 'overwrite' and own.reads_whole_table
       or not exists (select from lake.data_file f where f.commit_id = own.id) then
        return null;
    end if;
    if exists (select from lake.snapshot s
               where s.table_id = own.table_id and s.id > own.keys_until and s.kind = 'rollback')
       or cardinality(home.sequence_by) > 0 and (
           exists (select from unnest(own.keys_beneath) as b (id)
                   where not exists (select from lake.commit c where c.id = b.id and c.state = 'published'))
           or exists (select from lake.data_file f
                      where f.table_id = own.table_id and f.removed_snapshot > own.keys_until
                        and not exists (select from lake.snapshot s where s.table_id = f.table_id
                                        and s.id = f.removed_snapshot and s.kind = 'compact'))) then
        return 'keys_lost';
    end if;
    if exists (select from lake.data_file f
               where f.table_id = own.table_id and f.added_snapshot > coalesce(own.keys_until, 0)
                 and f.sequence > coalesce(own.keys_until, 0) and f.commit_id <> all(own.keys_beneath)) then
        return 'keys_added';
    end if;
    return null;
end $$;

-- Of each gate the newest verdict on a commit; of the gate that the table requires by hash, the newest of that suite.
create or replace function lake.verdicts_v1(own lake.commit) returns setof lake.verdict
language plpgsql as $$
begin
    return query
    select distinct on (v.gate) v.* from lake.verdict v
    left join lake.gate_requirement r
        on r.table_id = own.table_id and r.released_at is null and r.suite_name = v.gate
    where v.commit_id = own.id and (r.suite_hash is null or r.suite_hash = v.suite_hash)
    order by v.gate, v.id desc;
end $$;

-- What brings no rows needs no gate. All verdicts that count must have passed, also those of gates that nobody requires.
create or replace function lake.check_verdicts_v1(own lake.commit, home lake."table") returns void
language plpgsql as $$
declare
    required lake.gate_requirement;
    required_name text;
    failed record;
begin
    select * into required from lake.gate_requirement r where r.table_id = own.table_id and r.released_at is null;
    required_name := coalesce(required.suite_name, home.options ->> 'required_gate', '');
    if required_name = '' and not exists (select from lake.verdict v where v.commit_id = own.id) then
        return;
    end if;
    if required_name <> '' and own.kind not in ('compact', 'evolve') and not exists (
        select from lake.verdicts_v1(own) v where v.gate = required_name) then
        perform lake.refuse_v1(
            own, home,
            case when exists (select from lake.verdict v where v.commit_id = own.id and v.gate = required_name)
                 then 'verdict_of_another_suite' else 'verdict_missing' end,
            jsonb_build_object('gate', required_name, 'version', required.suite_version, 'hash', required.suite_hash));
    end if;
    select v.gate, v.outcome into failed from lake.verdicts_v1(own) v
    where v.outcome not in ('accept', 'warn') order by v.gate limit 1;
    if found then
        perform lake.refuse_v1(own, home, 'verdict_not_passed',
                               jsonb_build_object('gate', failed.gate, 'verdict', failed.outcome));
    end if;
end $$;

-- A verdict is stale once rows have changed that it rests on, or columns that it has looked at, or the commit itself has.
-- What it was judged on top of counts as there, and has to be.
create or replace function lake.check_staleness_v1(own lake.commit, home lake."table") returns void
language plpgsql as $$
declare
    stale record;
begin
    if not exists (select from lake.verdict v where v.commit_id = own.id) then
        return;
    end if;
    select v.gate, v.base_snapshot_id into stale
    from lake.verdicts_v1(own) v
    where v.amendment <> own.amendment
       or lake.looks_otherwise_v1(own, home, v.looked_at)
       or exists (select from unnest(v.beneath) as b (id)
                  where not exists (select from lake.commit c where c.id = b.id and c.state = 'published'))
       or v.judges_table and exists (
            select from lake.snapshot s
            where s.table_id = own.table_id and s.id > v.base_snapshot_id and s.kind not in ('compact', 'evolve')
              and s.commit_id <> all(v.beneath))
       or v.judges_partitions and exists (
            select from lake.touched_v1(own.id) as touched (partition_id)
            join lake.data_file f on f.partition_id = touched.partition_id
            where f.added_snapshot > v.base_snapshot_id and f.sequence > v.base_snapshot_id
                  and f.commit_id <> all(v.beneath)
               or f.removed_snapshot > v.base_snapshot_id
                  and not exists (select from lake.snapshot s where s.table_id = f.table_id
                                  and s.id = f.removed_snapshot
                                  and (s.kind = 'compact' or s.commit_id = any(v.beneath))))
       or v.judges_partitions and exists (
            select from lake.rolled_back_v1(own.table_id, v.base_snapshot_id, v.beneath) as b (partition_id)
            where b.partition_id in (select lake.touched_v1(own.id)))
    order by v.gate limit 1;
    if found then
        perform lake.refuse_v1(own, home, 'verdict_stale',
                               jsonb_build_object('gate', stale.gate, 'judged_at', stale.base_snapshot_id));
    end if;
end $$;

-- An overwrite is made from the head as it is now, if it has to replace what is there, or files that it was to take out
-- have been rewritten.
create or replace function lake.rebase_v1(own_id uuid, replaces_all boolean) returns void
language plpgsql as $$
declare
    file_ids bigint[];
begin
    if not replaces_all and not exists (
        select from lake.commit_removal r join lake.data_file f on f.id = r.file_id
        where r.commit_id = own_id and f.removed_snapshot is not null) then
        return;
    end if;
    file_ids := lake.find_target_v1(own_id);
    perform from lake.data_file f where f.id = any(file_ids) order by f.id for no key update;
    update lake.commit c
    set base_snapshot_id = t.head_id,
        summary = c.summary || jsonb_build_object('files_removed', cardinality(file_ids)) || lake.not_counted_v1()
    from lake."table" t where c.id = own_id and t.id = c.table_id;
end $$;

-- A rollback is made from the head as it is now, where compactions have rewritten files.
create or replace function lake.aim_anew_v1(own_id uuid, head bigint) returns void
language plpgsql as $$
declare
    file_ids constant bigint[] := lake.aim_v1(own_id);
begin
    perform from lake.data_file f where f.id = any(file_ids) order by f.id for no key update;
    update lake.commit c set base_snapshot_id = head where c.id = own_id;
end $$;

-- The publish itself: the next snapshot of the table, its files stamped, the head moved.
create or replace function lake.become_snapshot_v1(own_id uuid, new_id bigint, stamp timestamptz) returns void
language plpgsql as $$
declare
    own lake.commit;
begin
    perform set_config('lake.publishing', 'v1', true);
    update lake.commit c set state = 'published', snapshot_id = new_id, decided_at = stamp where c.id = own_id
    returning * into own;
    update lake."table" t
    set head_id = new_id,
        schema_id = case when own.schema_id <> own.base_schema_id then own.schema_id else t.schema_id end
    where t.id = own.table_id
    returning t.schema_id into own.schema_id;
    insert into lake.snapshot (table_id, id, commit_id, kind, schema_id, committed_at, summary, properties)
    values (own.table_id, new_id, own_id, own.kind, own.schema_id, stamp, own.summary, own.properties);
    update lake.data_file f set added_snapshot = new_id, sequence = coalesce(f.sequence, new_id) where f.commit_id = own_id;
    update lake.data_file f set removed_snapshot = new_id
    from lake.commit_removal r where r.commit_id = own_id and f.id = r.file_id;
    if own.application is not null then
        insert into lake.writer_progress (table_id, application, version, snapshot_id)
        values (own.table_id, own.application, own.version, new_id)
        on conflict (table_id, application) do update
        set version = excluded.version, snapshot_id = excluded.snapshot_id;
    end if;
end $$;

-- The marks of the partitions whose rows a commit has changed end with its publish; whether any had a file.
create or replace function lake.reset_marks_v1(own_id uuid, own_table bigint) returns boolean
language plpgsql as $$
declare
    leaves_files boolean;
begin
    if not exists (select from lake.done_partition d where d.table_id = own_table and d.reset_at is null) then
        return false;
    end if;
    with touched as (
        select lake.touched_v1(own_id) as partition_id
    ), reset as (
        update lake.done_partition d
        set reset_at = clock_timestamp(),
            reset_snapshot = (select c.snapshot_id from lake.commit c where c.id = own_id)
        from touched where d.table_id = own_table and d.partition_id = touched.partition_id and d.reset_at is null
        returning d.success_file
    )
    select coalesce(bool_or(success_file), false) into leaves_files from reset;
    return leaves_files;
end $$;

-- The snapshot that was the newest at a moment, expired or not; none for a moment that is still to come when the patience
-- ends. Whoever is publishing has done so first: what comes later is of a later moment, and the answer stays. No statement
-- of a client takes ten minutes.
create or replace function lake.find_moment_v1(own_table bigint, moment timestamptz, patience_ms text) returns setof lake.snapshot
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    until constant timestamptz := clock_timestamp() + patience_ms::integer * interval '1 millisecond';
begin
    -- What comes after a head is above it, also where that is a little ahead of the clock.
    while moment >= clock_timestamp() and not exists (
        select from lake."table" t join lake.snapshot s on s.table_id = t.id and s.id = t.head_id
        where t.id = own_table and s.committed_at >= moment
          and s.committed_at < clock_timestamp() + interval '1 minute') loop
        if moment >= until then
            return;
        end if;
        perform pg_sleep_until(moment + interval '1 microsecond');
    end loop;
    if moment > clock_timestamp() - interval '10 minutes' then
        perform set_config('lock_timeout', patience_ms, true);
        begin
            perform from lake."table" t where t.id = own_table for share;
            perform lake.answer_v1('{}');  -- gives the lock back: a reader's transaction may last
        exception
            when sqlstate 'LK001' then null;
        end;
    end if;
    return query select * from lake.snapshot s where s.table_id = own_table and s.committed_at <= moment
                 order by s.id desc limit 1;
end $$;
