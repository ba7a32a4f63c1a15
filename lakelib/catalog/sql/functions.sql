-- All functions of the catalog, as they are now. A catalog has them as a whole: each is put in the place of what was there.
-- include: functions/amend_v1.sql
-- include: functions/discard_v1.sql
-- include: functions/end_v1.sql
-- include: functions/holds_past_v1.sql
-- include: functions/judge_v1.sql
-- include: functions/maintaining_v1.sql
-- include: functions/promising_v1.sql
-- include: functions/publish_v1.sql
-- include: functions/reading_v1.sql
-- include: functions/refuse_publish_v1.sql
-- include: functions/rights_v1.sql
-- include: functions/rollback_v1.sql
-- include: functions/samples_v1.sql
-- include: functions/stage_v1.sql
-- include: functions/tags_v2.sql
-- include: functions/turn_v1.sql
-- include: functions/writing_v1.sql

revoke all on all functions in schema lake from public;
