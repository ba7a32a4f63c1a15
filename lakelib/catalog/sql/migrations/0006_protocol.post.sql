-- Nobody publishes by SQL of their own any more.
drop trigger snapshot_admitted on lake.snapshot;
drop function lake.admit_publish_v1();

-- include: functions/refuse_publish_v1.sql
