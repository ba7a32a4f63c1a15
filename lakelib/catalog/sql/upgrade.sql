-- The migrations whose additions are there. Clients of the version before are shut out only once lake.migration has them, too.
create table lake.upgrade (
    version integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default clock_timestamp()
);
