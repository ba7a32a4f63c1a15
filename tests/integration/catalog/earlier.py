"""A catalog as the version before had it."""

from typing import Any

import psycopg

_BACK = """
do $$
declare
    made regprocedure;
begin
    for made in select oid::regprocedure from pg_proc where pronamespace = 'lake'::regnamespace loop
        execute 'drop function ' || made || ' cascade';
    end loop;
end $$;
drop table if exists lake.upgrade;
do $$
declare
    made regclass;
begin
    for made in select oid::regclass from pg_class where relnamespace = 'lake'::regnamespace and relkind = 'v' loop
        execute 'drop view if exists ' || made || ' cascade';
    end loop;
end $$;
drop table lake.shown, lake.shown_mask;
alter table lake.table_schema drop column number;
drop table lake.mask, lake.masked;
drop table lake.consumer, lake.listener;
drop table lake.discard, lake.waiting, lake.gate_requirement, lake.suite, lake.identity, lake.warehouse;
alter table lake.commit drop column amendment, drop column rows_from_base, drop column keys_until,
    drop column marks_run, drop column keys_beneath,
    drop column reads_beneath;
alter table lake.verdict drop column amendment, drop column beneath, drop column looked_at;
alter table lake.lease drop column taken_by, drop column last_snapshot_id;
alter table lake.done_partition drop column reset_snapshot;
alter table lake.tag drop column family, drop column until, drop column keep_last;
alter table lake.commit drop column restores cascade;
alter table lake."table" drop constraint table_merge_check;
drop index lake.snapshot_rollback;
alter table lake.data_file drop constraint data_file_table_id_path_commit_id_key;
alter table lake.data_file add unique (table_id, path);
alter table lake.snapshot add unique (table_id, committed_at);
alter table lake.snapshot add foreign key (table_id) references lake."table" (id);
alter table lake.commit add foreign key (table_id) references lake."table" (id);
delete from lake.migration where version > 3;
"""


def make_earlier(connection: psycopg.Connection[Any]) -> None:
    """What later migrations have brought is gone."""
    connection.execute(_BACK.encode())
