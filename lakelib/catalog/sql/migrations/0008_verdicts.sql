-- What a verdict has looked at: columns, which are more than their names. What it shows of rows goes with them.
alter table lake.verdict add column looked_at jsonb not null default '{}';
