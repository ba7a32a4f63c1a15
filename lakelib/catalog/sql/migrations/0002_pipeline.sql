-- Verdicts say what they rest on, people may publish what a gate rejected, snapshots expire, partitions are done.
alter table lake.verdict
    add column suite_hash text not null,
    add column engine text not null,
    add column seconds double precision not null,
    add column judges_partitions boolean not null,
    add column judges_table boolean not null;

alter table lake.commit
    add column approved_by text,
    add column approval_reason text,
    add check ((approved_by is null) = (approval_reason is null));

alter table lake.snapshot add column expired_at timestamptz;

create table lake.done_partition (
    table_id bigint not null references lake."table" (id),
    partition_id bigint not null references lake.partition (id),
    snapshot_id bigint not null,
    created_at timestamptz not null,
    modified_at timestamptz not null,
    reset_at timestamptz,
    primary key (table_id, partition_id)
);
