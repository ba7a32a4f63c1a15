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

create index commit_not_published on lake.commit (table_id, state) where state <> 'published';
create index commit_removal_file on lake.commit_removal (file_id);

alter table lake.snapshot add column expired_at timestamptz;
create index snapshot_kept on lake.snapshot (table_id, id) where expired_at is null;
create index data_file_removed on lake.data_file (table_id, removed_snapshot, id) where removed_snapshot is not null;

drop table lake.deletion_queue;

create table lake.deletion_queue (
    id bigint generated always as identity primary key,
    table_id bigint not null references lake."table" (id),
    path text not null,
    size_bytes bigint not null,
    not_before timestamptz not null,
    unique (table_id, path)
);

create table lake.done_partition (
    table_id bigint not null references lake."table" (id),
    partition_id bigint not null references lake.partition (id),
    snapshot_id bigint not null,
    created_at timestamptz not null,
    modified_at timestamptz not null,
    success_file boolean not null,
    reset_at timestamptz,
    primary key (table_id, partition_id)
);
