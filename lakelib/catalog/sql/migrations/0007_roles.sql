-- Whoever is no owner changes the catalog through functions alone: each takes a right, and none is for everybody.
alter table lake.lease add column taken_by text not null default session_user;
