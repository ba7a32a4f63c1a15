-- The namespace is there afterwards, whoever made it; returns its name if this call did.
-- name: create_namespace
insert into lake.namespace (name) values (%(name)s) on conflict do nothing returning name;

-- Is there such a namespace?
-- name: find_namespace
select name from lake.namespace where name = %(name)s;

-- Are clients shut out that know nothing of a migration?
-- name: is_closed
select exists (select from lake.migration where version = %(version)s) as is_closed;

-- All namespaces by name.
-- name: list_namespaces
select name from lake.namespace order by name;

-- The tables of a namespace by name.
-- name: list_tables
select name from lake."table" where namespace = %(namespace)s and dropped_at is null order by name;

-- A new table with its first schema version to come; nothing if the name is taken.
-- name: insert_table
insert into lake."table" (namespace, name, location, schema_id, last_schema_id, last_column_id, primary_key,
                          partition_by, sequence_by, bucket_mode, bucket_depth, merge, options)
values (%(namespace)s, %(name)s, %(location)s, 1, 1, %(last_column_id)s, %(primary_key)s::int[], %(partition_by)s::int[],
        %(sequence_by)s::int[], %(bucket_mode)s, %(bucket_depth)s, %(merge)s, %(options)s)
on conflict (namespace, name) where dropped_at is null do nothing
returning id;

-- A schema version, proposed or real; there already if this is said again after a lost reply.
-- name: insert_schema
insert into lake.table_schema (table_id, id, columns) values (%(table_id)s, %(id)s, %(columns)s)
on conflict do nothing;

-- A table at its head, by name.
-- name: load_table_by_name
select t.*, s.columns::text as columns, clock_timestamp() as loaded_at, r.suite_name, r.suite_version, r.suite_hash
from lake."table" t join lake.table_schema s on s.table_id = t.id and s.id = t.schema_id
left join lake.gate_requirement r on r.table_id = t.id and r.released_at is null
where t.namespace = %(namespace)s and t.name = %(name)s and t.dropped_at is null;

-- Tables at their heads, all of one moment, by name.
-- name: load_tables_by_name
select t.*, s.columns::text as columns, clock_timestamp() as loaded_at, r.suite_name, r.suite_version, r.suite_hash
from unnest(%(namespaces)s::text[], %(names)s::text[]) as asked (namespace, name)
join lake."table" t on t.namespace = asked.namespace and t.name = asked.name and t.dropped_at is null
join lake.table_schema s on s.table_id = t.id and s.id = t.schema_id
left join lake.gate_requirement r on r.table_id = t.id and r.released_at is null;

-- A table at its head, by id.
-- name: load_table_by_id
select t.*, s.columns::text as columns, clock_timestamp() as loaded_at, lake.definition_v1(t) as definition, r.suite_name, r.suite_version, r.suite_hash
from lake."table" t join lake.table_schema s on s.table_id = t.id and s.id = t.schema_id
left join lake.gate_requirement r on r.table_id = t.id and r.released_at is null
where t.id = %(table_id)s and t.dropped_at is null;

-- Schema versions of a table.
-- name: load_schemas
select id, columns::text as columns from lake.table_schema where table_id = %(table_id)s and id = any(%(ids)s);

-- All versions of a table's schema, those included that commits have proposed and that never counted.
-- name: list_schemas
select id, columns::text as columns from lake.table_schema where table_id = %(table_id)s order by id;

-- The name is free from now on; the table's rows stay for whoever reclaims its files.
-- name: drop_table
update lake."table" set dropped_at = clock_timestamp() where id = %(table_id)s and dropped_at is null;

-- Other options, unless somebody else has changed them since they were read, or has committed since a snapshot at which
-- the rows were looked at for them. The gate that is required stays as it is.
-- name: replace_options
update lake."table"
set options = %(options)s::jsonb - 'required_gate'
    || jsonb_strip_nulls(jsonb_build_object('required_gate', options -> 'required_gate'))
where id = %(table_id)s and dropped_at is null
  and options - 'required_gate' = %(read)s::jsonb - 'required_gate'
  and head_id = coalesce(%(looked_at)s::bigint, head_id)
returning id;

-- Other buckets for whoever writes from now on, unless somebody else has changed them since they were read.
-- name: replace_buckets
update lake."table" set bucket_mode = %(mode)s, bucket_depth = %(depth)s::integer
where id = %(table_id)s and dropped_at is null
  and bucket_mode = %(read_mode)s and bucket_depth is not distinct from %(read_depth)s::integer
returning id;

-- A schema id and column ids that nobody else will ever get on this table.
-- name: reserve_schema
select * from lake.reserve_schema_v1(%(table_id)s, %(column_count)s::integer);
