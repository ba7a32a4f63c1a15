-- A lease may hold all snapshots up to a last one; null is the one alone.
alter table lake.lease add column last_snapshot_id bigint;
alter table lake.lease add foreign key (table_id, last_snapshot_id) references lake.snapshot (table_id, id);
alter table lake.lease add check (last_snapshot_id >= snapshot_id);

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
