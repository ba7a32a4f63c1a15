-- A table knows up to when vacuum has deleted files that no commit named: a write that began before is refused.
alter table lake."table" add column orphans_before timestamptz;
