-- How versions of a key become one row: the name of a merge engine, or JSON that describes one, with columns by id.
-- Clients of before take every table for one that deduplicates: others are made once this migration is closed.
alter table lake."table" add constraint table_merge_check
    check (merge in ('deduplicate', 'first_row', 'partial_update', 'aggregate') or merge like '{%');
