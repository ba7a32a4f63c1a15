-- A catalog that was just restored is made one that can stand beside its original: it holds on to nothing of it, and has
-- nothing to delete. `restored` are the tables that it is to have, with their locations; `nowhere` is a location where
-- nothing is.
delete from lake.lease;
delete from lake.listener;
delete from lake.masked;
delete from lake.mask;  -- made anew where they are wanted
delete from lake.shown;
delete from lake.shown_mask;
delete from lake.deletion_queue;

-- What was not published at the moment of the backup is not in it: its files may be gone.
update lake.commit set state = 'expired', decided_at = coalesce(decided_at, clock_timestamp()),
    reason = coalesce(reason || '; ', '') || 'it was not published when the backup was made'
where state in ('staged', 'rejected');
delete from lake.commit_read r using lake.commit c where c.id = r.commit_id and c.state <> 'published';
delete from lake.commit_removal r using lake.commit c where c.id = r.commit_id and c.state <> 'published';

-- Tables that are not in the backup count as dropped, in a place where nothing is.
update lake."table" t set dropped_at = coalesce(t.dropped_at, clock_timestamp()),
    location = (select location from pg_temp.nowhere) || '/' || t.id
where not exists (select from pg_temp.restored r where r.id = t.id);
delete from lake.tag g where not exists (select from pg_temp.restored r where r.id = g.table_id);
delete from lake.consumer c where not exists (select from pg_temp.restored r where r.id = c.table_id);
delete from lake.done_partition d where not exists (select from pg_temp.restored r where r.id = d.table_id);
update lake.snapshot s set expired_at = clock_timestamp()
where s.expired_at is null and not exists (select from pg_temp.restored r where r.id = s.table_id);

-- Files that no readable snapshot needs are not in the backup either.
create temporary table restored_unneeded on commit drop as
select f.id from lake.data_file f
where f.added_snapshot is null
   or not exists (select from pg_temp.restored r where r.id = f.table_id)
   or f.removed_snapshot is not null
      and not exists (select from lake.snapshot s
                      where s.table_id = f.table_id and s.expired_at is null
                        and s.id >= f.added_snapshot and s.id < f.removed_snapshot);
delete from lake.commit_removal m using pg_temp.restored_unneeded u where m.file_id = u.id;
delete from lake.data_file f using pg_temp.restored_unneeded u where f.id = u.id;

update lake."table" t set location = r.location from pg_temp.restored r where r.id = t.id;
