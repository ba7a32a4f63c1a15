-- Which lake this is, its warehouses, and what differs from the server that it is bound to.
-- name: load_identity
select i.id, i.epoch, i.adopted_at, i.adopted_by, i.adoption_reason, lake.check_identity_v1(i.epoch) as differs,
       (select jsonb_agg(jsonb_build_object('id', w.id, 'uri', w.uri, 'epoch', w.epoch, 'token', w.token))
        from lake.warehouse w) as warehouses
from lake.identity i;

-- Does the catalog know a table below this folder?
-- name: find_table_below
select id from lake."table" where starts_with(location, %(root)s) limit 1;

-- A warehouse belongs to the lake, if it did not already.
-- name: insert_warehouse
select lake.bind_warehouse_v1(%(id)s, %(uri)s, %(epoch)s, %(token)s);

-- Whoever adopts the lake does it alone.
-- name: lock_identity
select id from lake.identity for update;

-- The other warehouses are not this server's: they may be the original's.
-- name: let_warehouses_go
update lake.warehouse set token = gen_random_uuid() where id <> %(id)s;

-- The next epoch begins, on this server.
-- name: adopt_identity
update lake.identity i
set epoch = greatest(i.epoch, %(epoch)s) + 1, system_identifier = s.system_identifier, database_oid = s.database_oid,
    timeline = s.timeline, data_made_at = s.data_made_at, adopted_at = clock_timestamp(), adopted_by = %(by)s,
    adoption_reason = %(reason)s
from lake.server_v1() s
returning i.epoch;

-- The warehouse, known or not, is in this epoch.
-- name: adopt_warehouse
insert into lake.warehouse (id, uri, epoch, token) values (%(id)s, %(uri)s, %(epoch)s, gen_random_uuid())
on conflict (id) do update set epoch = excluded.epoch, token = excluded.token;
