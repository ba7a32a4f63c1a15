-- Until when a tag pins its snapshot. One of a family has an end: once its moment has come, where there is one, and so many
-- of its family are on later snapshots, where that is said. One of no family stays until somebody deletes it.
alter table lake.tag add column family text;
alter table lake.tag add column until timestamptz;
alter table lake.tag add column keep_last integer;
alter table lake.tag add check (keep_last > 0);
alter table lake.tag add check ((family is null) = (until is null and keep_last is null));
