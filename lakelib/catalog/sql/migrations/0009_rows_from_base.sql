-- Whether a commit's rows were made from those that its table had at the base: it depends on every one of them, whatever its
-- target.
alter table lake.commit add column rows_from_base boolean not null default false;
