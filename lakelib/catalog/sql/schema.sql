-- The catalog: the present truth. Migrations lead here; a test proves it.
create schema lake;

create table lake.migration (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default clock_timestamp()
);

-- include: upgrade.sql

create table lake.namespace (
    name text primary key,
    created_at timestamptz not null default clock_timestamp()
);

-- One row a table; its row lock orders the table's publishes. Columns are named by id.
create table lake."table" (
    id bigint generated always as identity primary key,
    namespace text not null references lake.namespace (name),
    name text not null,
    location text not null,
    schema_id integer not null,
    last_schema_id integer not null,
    last_column_id integer not null,
    primary_key integer[] not null,
    partition_by integer[] not null,
    sequence_by integer[] not null,
    bucket_mode text not null check (bucket_mode in ('fixed', 'dynamic', 'postpone', 'none')),
    bucket_depth integer check (bucket_depth between 0 and 16),
    -- A merge engine's name, or JSON that describes it, with columns by id.
    merge text not null
        constraint table_merge_check
        check (merge in ('deduplicate', 'first_row', 'partial_update', 'aggregate') or merge like '{%'),
    options jsonb not null default '{}',
    head_id bigint not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    dropped_at timestamptz,
    orphans_before timestamptz,
    check ((bucket_mode = 'fixed') = (bucket_depth is not null)),
    check ((bucket_mode = 'none') = (cardinality(primary_key) = 0))
) with (fillfactor = 50);

create unique index table_name on lake."table" (namespace, name) where dropped_at is null;

-- Schema versions, proposed ones too: a version counts once a table or a snapshot names it.
create table lake.table_schema (
    table_id bigint not null references lake."table" (id),
    id integer not null,
    columns jsonb not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (table_id, id)
);

alter table lake."table"
    add foreign key (id, schema_id) references lake.table_schema (table_id, id) deferrable initially deferred;

-- A partition is its key: one sortable encoding a partition column, null for NULL.
create table lake.partition (
    id bigint generated always as identity primary key,
    table_id bigint not null references lake."table" (id),
    key bytea[] not null,
    path text not null,
    unique (table_id, key)
);

-- Whoever names a schema version names its table. `restores`: the snapshot whose content a rollback brings back.
create table lake.commit (
    id uuid primary key,
    table_id bigint not null,
    kind text not null,
    state text not null check (state in ('staged', 'published', 'rejected', 'expired')),
    base_snapshot_id bigint not null,
    base_schema_id integer not null,
    schema_id integer not null,
    reads_whole_table boolean not null,
    reads_where jsonb,
    application text,
    version bigint,
    attempt integer not null default 1,
    summary jsonb not null default '{}',
    properties jsonb not null default '{}',
    staged_at timestamptz not null default clock_timestamp(),
    decided_at timestamptz,
    reason text,
    snapshot_id bigint,
    approved_by text,
    approval_reason text,
    amendment integer not null default 0,
    rows_from_base boolean not null default false,
    restores bigint,
    check ((application is null) = (version is null)),
    check ((state = 'published') = (snapshot_id is not null)),
    check ((state = 'staged') = (decided_at is null)),
    check ((approved_by is null) = (approval_reason is null)),
    check ((kind = 'rollback') = (restores is not null)),
    foreign key (table_id, base_schema_id) references lake.table_schema (table_id, id),
    foreign key (table_id, schema_id) references lake.table_schema (table_id, id)
);

create unique index commit_published_once on lake.commit (table_id, application, version) where state = 'published';
create index commit_staged on lake.commit (table_id, application, version) where state = 'staged';
create index commit_not_published on lake.commit (table_id, state) where state <> 'published';

-- All that is published together is committed at one moment. An expired snapshot cannot be read any more. It stays: rows
-- and applications' progress refer to it.
create table lake.snapshot (
    table_id bigint not null,
    id bigint not null check (id > 0),
    commit_id uuid not null unique references lake.commit (id),
    kind text not null,
    schema_id integer not null,
    committed_at timestamptz not null,
    summary jsonb not null,
    properties jsonb not null,
    expired_at timestamptz,
    primary key (table_id, id),
    foreign key (table_id, schema_id) references lake.table_schema (table_id, id)
);

create index snapshot_kept on lake.snapshot (table_id, id) where expired_at is null;
create index snapshot_rollback on lake.snapshot (table_id, id) where kind = 'rollback';

alter table lake.commit add foreign key (table_id, restores) references lake.snapshot (table_id, id);

-- A file is live in snapshot s when added_snapshot <= s and (removed_snapshot is null or removed_snapshot > s).
-- Bounds are arrays indexed by column id; null is unknown. A rollback names files again that were there before, with the
-- sequence that their rows have: of the rows that name one path, one at most is live in a snapshot.
create table lake.data_file (
    id bigint generated always as identity primary key,
    table_id bigint not null,
    commit_id uuid not null references lake.commit (id),
    partition_id bigint not null references lake.partition (id),
    path text not null,
    depth integer not null check (depth between 0 and 16),
    prefix bigint not null check (prefix >= 0 and prefix < (1::bigint << depth)),
    run integer not null,
    level integer not null,
    row_count bigint not null check (row_count > 0),
    delete_count bigint not null check (delete_count between 0 and row_count),
    size_bytes bigint not null,
    schema_id integer not null,
    lower_bounds bytea[] not null,
    upper_bounds bytea[] not null,
    null_counts bigint[] not null,
    sequence bigint,
    added_snapshot bigint,
    removed_snapshot bigint,
    unique (table_id, path, commit_id),
    check (removed_snapshot > added_snapshot)
);

create index data_file_partition on lake.data_file (partition_id, added_snapshot);
create index data_file_live
    on lake.data_file (table_id, partition_id, (coalesce(removed_snapshot, 9223372036854775807)));
create index data_file_added on lake.data_file (table_id, added_snapshot);
create index data_file_removed on lake.data_file (table_id, removed_snapshot, id) where removed_snapshot is not null;
create index data_file_commit on lake.data_file (commit_id);

-- The partitions whose rows a commit's content depends on; `reads_where` names those that were not there yet.
create table lake.commit_read (
    commit_id uuid not null references lake.commit (id),
    partition_id bigint not null references lake.partition (id),
    primary key (commit_id, partition_id)
);

-- The files that publishing a commit takes out of the table.
create table lake.commit_removal (
    commit_id uuid not null references lake.commit (id),
    file_id bigint not null references lake.data_file (id),
    primary key (commit_id, file_id)
);

create index commit_removal_file on lake.commit_removal (file_id);

-- How far each application has come on each table.
create table lake.writer_progress (
    table_id bigint not null references lake."table" (id),
    application text not null,
    version bigint not null,
    snapshot_id bigint not null,
    primary key (table_id, application),
    foreign key (table_id, snapshot_id) references lake.snapshot (table_id, id)
);

-- What a gate found in a commit, as it was after so many amendments. It rests on rows of other commits as far as
-- `judges_partitions` (those that the commit touches) and `judges_table` say; those `beneath` were taken for published.
-- `looked_at` names columns, each with its id and type then, and the order of all if it was looked at.
create table lake.verdict (
    id bigint generated always as identity primary key,
    commit_id uuid not null references lake.commit (id),
    gate text not null,
    outcome text not null check (outcome in ('accept', 'warn', 'reject', 'errored')),
    base_snapshot_id bigint not null,
    evidence jsonb not null default '{}',
    judged_at timestamptz not null default clock_timestamp(),
    suite_hash text not null,
    engine text not null,
    seconds double precision not null,
    judges_partitions boolean not null,
    judges_table boolean not null,
    amendment integer not null default 0,
    beneath uuid[] not null default '{}',
    looked_at jsonb not null default '{}'
);

create index verdict_commit on lake.verdict (commit_id, gate, id);

-- What a person has decided against waits for nobody.
create table lake.discard (
    commit_id uuid primary key references lake.commit (id) on delete cascade,
    discarded_by text not null,
    reason text not null,
    discarded_at timestamptz not null default clock_timestamp()
);

-- Who waits to publish to a table, in the order of coming, and until when to believe it. Not logged: what a crash of the
-- server loses is a place in a line.
create unlogged table lake.waiting (
    place bigint generated always as identity primary key,
    table_id bigint not null,
    turn uuid not null,
    is_alone boolean not null,
    until timestamptz not null,
    unique (turn, table_id)
);

-- A reader's hold on a snapshot, or on all from that one to the last. The foreign keys keep both ends while the lease is
-- there.
create table lake.lease (
    id uuid primary key,
    table_id bigint not null,
    snapshot_id bigint not null,
    holder text not null,
    expires_at timestamptz not null,
    taken_by text not null default session_user,
    last_snapshot_id bigint,
    foreign key (table_id, snapshot_id) references lake.snapshot (table_id, id),
    foreign key (table_id, last_snapshot_id) references lake.snapshot (table_id, id),
    check (last_snapshot_id >= snapshot_id)
);

create index lease_snapshot on lake.lease (table_id, snapshot_id);

-- One of a family has an end: once its moment has come, where there is one, and so many of its family are on later
-- snapshots, where that is said. One of no family stays until somebody deletes it.
create table lake.tag (
    table_id bigint not null,
    name text not null,
    snapshot_id bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    family text,
    until timestamptz,
    keep_last integer check (keep_last > 0),
    primary key (table_id, name),
    foreign key (table_id, snapshot_id) references lake.snapshot (table_id, id),
    check ((family is null) = (until is null and keep_last is null))
);

-- A named position in a table's history: all up to that snapshot was read, 0 is before the first. A snapshot from the
-- position on stays while the next one, which is unread, was committed less than `keep_for` ago. `move` is that of whoever
-- has moved the position last.
create table lake.consumer (
    table_id bigint not null references lake."table" (id) on delete cascade,
    name text not null,
    position bigint not null check (position >= 0),
    keep_for interval not null check (keep_for >= interval '0'),
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null default session_user,
    advanced_at timestamptz,
    advanced_by text,
    move uuid,
    primary key (table_id, name),
    check ((advanced_at is null) = (advanced_by is null))
);

-- Who listens on the channel `lake_commit`, to a table or to all, and until when to believe it: publishers tell nobody else.
-- Not logged: what a crash of the server loses is said again.
create unlogged table lake.listener (
    id uuid primary key,
    table_id bigint,
    until timestamptz not null
);

-- Files that nothing names any more, to be deleted once `not_before` has passed. What is named does not get in.
create table lake.deletion_queue (
    id bigint generated always as identity primary key,
    table_id bigint not null references lake."table" (id),
    path text not null,
    size_bytes bigint not null,
    not_before timestamptz not null,
    unique (table_id, path)
);

-- As of which snapshots the masks of a partition's files are kept: one that touched it, and until the next one does.
create table lake.masked (
    partition_id bigint not null references lake.partition (id) on delete cascade,
    snapshot_id bigint not null,
    primary key (partition_id, snapshot_id)
);

-- The rows of a file that readers do not see, for later runs supersede or delete them: as of the snapshots from one on, and
-- until before another. Where small the vector of positions is here, else it is a file.
create table lake.mask (
    id bigint generated always as identity primary key,
    table_id bigint not null references lake."table" (id),
    file_id bigint not null references lake.data_file (id) on delete cascade,
    from_snapshot bigint not null,
    until_snapshot bigint,
    row_count bigint not null check (row_count > 0),
    size_bytes bigint not null,
    vector bytea,
    path text,
    check (until_snapshot > from_snapshot),
    check ((vector is null) <> (path is null))
);

create unique index mask_file on lake.mask (file_id, from_snapshot);
create index mask_path on lake.mask (table_id, path) where path is not null;

-- The partitions that downstream may take for complete. One that gets other rows is reset, until it is marked again.
-- `success_file`: there may be a file _SUCCESS in its folder; of one that was reset, still to be deleted. `reset_snapshot`:
-- the one that has taken the mark back last; it stays when the partition is marked again.
create table lake.done_partition (
    table_id bigint not null references lake."table" (id),
    partition_id bigint not null references lake.partition (id),
    snapshot_id bigint not null,
    created_at timestamptz not null,
    modified_at timestamptz not null,
    success_file boolean not null,
    reset_at timestamptz,
    reset_snapshot bigint,
    primary key (table_id, partition_id)
);

-- Which lake this is, and on which server: one row. Whoever adopts the lake raises its epoch. What is null of the server
-- is not known, and not compared.
create table lake.identity (
    only_one boolean primary key default true check (only_one),
    id uuid not null,
    epoch bigint not null check (epoch > 0),
    system_identifier bigint not null,
    database_oid bigint not null,
    timeline text,
    data_made_at timestamptz,
    adopted_at timestamptz,
    adopted_by text,
    adoption_reason text,
    check ((adopted_at is null) = (adopted_by is null)),
    check ((adopted_at is null) = (adoption_reason is null))
);

-- The warehouses of this lake. A note in each repeats id, epoch and token. Locations that begin with `uri` mean the place
-- where the note is, wherever that has moved.
create table lake.warehouse (
    id uuid primary key,
    uri text not null unique,
    epoch bigint not null,
    token uuid not null,
    bound_at timestamptz not null default clock_timestamp()
);

-- This server and database. A dump that was restored has another identifier or oid, a promoted replica another timeline,
-- a copy of the data folder files that were made later; these only those may see who may call pg_stat_file.
create function lake.server_v1(
    out system_identifier bigint, out database_oid bigint, out timeline text, out data_made_at timestamptz
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    system_identifier := (select s.system_identifier from pg_control_system() s);
    database_oid := (select d.oid from pg_database d where d.datname = current_database());
    if not pg_is_in_recovery() then
        timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    end if;
    if has_function_privilege('pg_stat_file(text)', 'execute') then
        data_made_at := (pg_stat_file('PG_VERSION')).change;
    end if;
end $$;

-- Null if the catalog is still the one that a client saw at this epoch, on the server that it is bound to. Otherwise the
-- word for what differs: identity, epoch, server, database, timeline or copied.
create function lake.check_identity_v1(seen_epoch bigint) returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    bound lake.identity;
    here record;
begin
    select * into bound from lake.identity;
    if not found then
        return 'identity';
    end if;
    here := lake.server_v1();
    return case
        when bound.epoch is distinct from seen_epoch then 'epoch'
        when bound.system_identifier <> here.system_identifier then 'server'
        when bound.database_oid <> here.database_oid then 'database'
        when bound.timeline <> here.timeline then 'timeline'
        when bound.data_made_at <> here.data_made_at then 'copied'
    end;
end $$;

insert into lake.identity (id, epoch, system_identifier, database_oid, timeline, data_made_at)
select gen_random_uuid(), 1, s.system_identifier, s.database_oid, s.timeline, s.data_made_at
from lake.server_v1() s;

-- Suites of checks as they were registered, in versions of a name. Two of one hash check the same.
create table lake.suite (
    name text not null,
    version integer not null check (version > 0),
    hash text not null,
    text text not null,
    critical_checks integer not null check (critical_checks >= 0),
    registered_by text not null,
    registered_at timestamptz not null default clock_timestamp(),
    primary key (name, version),
    unique (name, hash),
    unique (name, version, hash)
);

-- Which suite a table requires, and which it has required: of a table at most one is not released. One without version and
-- hash was required by its name alone, in the table's options, until it was released.
create table lake.gate_requirement (
    id bigint generated always as identity primary key,
    table_id bigint not null references lake."table" (id) on delete cascade,
    suite_name text not null,
    suite_version integer,
    suite_hash text,
    required_by text,
    required_at timestamptz,
    released_by text,
    release_reason text,
    released_at timestamptz,
    foreign key (suite_name, suite_version, suite_hash) references lake.suite (name, version, hash),
    check (num_nulls(suite_version, suite_hash, required_by, required_at) in (0, 4)),
    check (num_nulls(released_by, release_reason, released_at) in (0, 3)),
    check (suite_hash is not null or released_at is not null)
);

create unique index gate_required on lake.gate_requirement (table_id) where released_at is null;
create index gate_requirement_table on lake.gate_requirement (table_id, id);

-- include: functions.sql

create trigger named_files_stay before insert on lake.deletion_queue for each row execute function lake.skip_named_v1();

create trigger mask_forgotten after delete on lake.mask
    for each row when (old.path is not null) execute function lake.queue_mask_v1();

create trigger file_forgotten after delete on lake.data_file
    for each row when (old.removed_snapshot is not null) execute function lake.forget_masked_v1();

create trigger snapshot_by_protocol before insert on lake.snapshot for each row
when (coalesce(current_setting('lake.publishing', true), '') = '') execute function lake.refuse_publish_v1();
