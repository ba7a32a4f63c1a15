-- The restored lake has files of its own: it is another lake than its original. The notes of done partitions are the
-- original's.
update lake.done_partition set success_file = false where success_file;

update lake.identity i
set id = gen_random_uuid(), epoch = 1, system_identifier = s.system_identifier, database_oid = s.database_oid,
    timeline = s.timeline, data_made_at = s.data_made_at, adopted_at = null, adopted_by = null, adoption_reason = null
from lake.server_v1() s;
delete from lake.warehouse;
