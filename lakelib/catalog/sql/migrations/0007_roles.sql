-- Whoever is no owner changes the catalog through functions alone: each takes a right, and none is for everybody.
alter table lake.lease add column taken_by text not null default session_user;

-- include: functions/rights_v1.sql
-- include: functions/reading_v1.sql
-- include: functions/writing_v1.sql
-- include: functions/promising_v1.sql
-- include: functions/maintaining_v1.sql

revoke all on all functions in schema lake from public;
