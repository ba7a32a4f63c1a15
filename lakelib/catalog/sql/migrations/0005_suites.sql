-- Suites are registered, and a table requires one of them by its hash; who required it, and who released it and why, stays.
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
