-- Of a table in which a key is in one partition: until which snapshot a commit has looked for its keys in the others, among
-- which staged commits too, and from which run on its files are the marks of rows that leave.
alter table lake.commit add column keys_until bigint;
alter table lake.commit add column marks_run integer;
alter table lake.commit add column keys_beneath uuid[] not null default '{}';
