-- Nobody publishes by SQL of their own any more.
drop trigger snapshot_admitted on lake.snapshot;
drop function lake.admit_publish_v1();

create trigger snapshot_by_protocol before insert on lake.snapshot for each row
when (coalesce(current_setting('lake.publishing', true), '') = '') execute function lake.refuse_publish_v1();
