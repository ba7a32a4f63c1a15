-- The staged commits of its table whose rows a commit was made from, too: those before it in one transaction.
alter table lake.commit add column reads_beneath uuid[] not null default '{}';
