-- What a person has decided against waits for nobody.
create table lake.discard (
    commit_id uuid primary key references lake.commit (id) on delete cascade,
    discarded_by text not null,
    reason text not null,
    discarded_at timestamptz not null default clock_timestamp()
);
