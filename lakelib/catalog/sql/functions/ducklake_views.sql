-- The catalog as DuckLake 1.0 has it, to be read: DuckDB attaches the lake by these views. What it calls a snapshot is a
-- moment, in microseconds since 1970: all that was published together is one.

-- The snapshots that are shown, and from which moment until before which other. All of a table without a key; of one with a
-- key, if its option `ducklake` is set, those whose masks are there. Of names that differ in case alone the first. The last
-- one stays until the next one is shown. A snapshot that nobody has shown before a later one was, or that has expired, is
-- nothing: its table is not there then.
create or replace view lake.ducklake_state as
select s.table_id, s.id as snapshot_id, s.schema_id, s.begin_snapshot, s.end_snapshot
from (
    select v.table_id, v.id, v.schema_id, lake.micros_v1(v.committed_at) as begin_snapshot,
           case when v.id < max(v.id) over (partition by v.table_id) then lake.micros_v1(n.committed_at) end as end_snapshot
    from lake.snapshot v join lake."table" t on t.id = v.table_id
    left join lake.snapshot n on n.table_id = v.table_id and n.id = v.id + 1
    where v.expired_at is null and t.dropped_at is null
      and not exists (select from lake."table" o  -- DuckDB does not tell names apart that differ in case
                      where o.dropped_at is null and o.id < t.id
                        and lower(o.namespace) = lower(t.namespace) and lower(o.name) = lower(t.name))
      and (cardinality(t.primary_key) = 0
           or (t.options ->> 'ducklake' = 'head'
               and exists (select from lake.shown h where h.table_id = v.table_id and h.snapshot_id = v.id)))
) s
where s.end_snapshot is null or s.end_snapshot > s.begin_snapshot;

-- From when on until when a table is there with one version of its schema.
create or replace view lake.ducklake_span as
select i.table_id, i.schema_id, min(i.begin_snapshot) as begin_snapshot,
       case when bool_and(i.end_snapshot is not null) then max(i.end_snapshot) end as end_snapshot
from (
    select w.*, sum(w.is_first) over (partition by w.table_id order by w.begin_snapshot) as number
    from (
        select s.*, case when s.begin_snapshot = lag(s.end_snapshot) over same and s.schema_id = lag(s.schema_id) over same
                         then 0 else 1 end as is_first
        from lake.ducklake_state s
        window same as (partition by s.table_id order by s.begin_snapshot)
    ) w
) i
group by i.table_id, i.schema_id, i.number;

-- `schema_version` tells which spans there are: a sum over them, so that one which comes late changes it as well. DuckDB
-- asks for the newest snapshot with each query, so the sum is made for the moments that are wanted, not for all.
create or replace view lake.ducklake_snapshot as
with span as materialized (
    select p.begin_snapshot, p.end_snapshot, hashtextextended(p::text, 0)::numeric as version from lake.ducklake_span p
)
select m.moment as snapshot_id, timestamptz 'epoch' + make_interval(days => (m.moment / 86400000000)::integer)
           + (m.moment % 86400000000) * interval '1 microsecond' as snapshot_time,
       mod((select coalesce(sum(hashtextextended(n.name, 0)), 0) from lake.namespace n)
           + (select coalesce(sum(p.version) filter (where p.begin_snapshot <= m.moment), 0)
                     - coalesce(sum(p.version) filter (where p.end_snapshot <= m.moment), 0) from span p)
           + 9223372036854775808::numeric * 4611686018427387904, 4611686018427387904)::bigint as schema_version,
       m.moment as next_catalog_id,
       (select coalesce(max(o.number), 0) + 1 from lake.table_schema o) as next_file_id
from (select s.begin_snapshot as moment from lake.ducklake_state s union select 0) m;

create or replace view lake.ducklake_metadata as
select m.key, m.value, null::text as scope, null::bigint as scope_id
from (values ('version', '1.0'), ('created_by', 'lakelib'), ('encrypted', 'false'),
             ('data_path', coalesce((select lake.ducklake_path_v1(w.uri) || '/' from lake.warehouse w
                                     order by w.bound_at, w.id limit 1), '/'))) as m (key, value);

create or replace view lake.ducklake_schema as
select hashtextextended(lower(n.name), 0) & 4611686018427387903 as schema_id,
       md5('schema ' || n.name)::uuid as schema_uuid, 0::bigint as begin_snapshot, null::bigint as end_snapshot,
       n.name as schema_name, ''::text as path, true as path_is_relative
from (select min(o.name) as name from (select name from lake.namespace union select 'main') o group by lower(o.name)) n;

create or replace view lake.ducklake_table as
select t.id as table_id, md5('table ' || t.location)::uuid as table_uuid, p.begin_snapshot, p.end_snapshot,
       hashtextextended(lower(t.namespace), 0) & 4611686018427387903 as schema_id, t.name as table_name,
       case when w.uri is null then lake.ducklake_path_v1(t.location) else substr(t.location, length(w.uri) + 2) end || '/'
           as path,
       w.uri is not null as path_is_relative
from lake.ducklake_span p join lake."table" t on t.id = p.table_id
left join (select o.uri from lake.warehouse o order by o.bound_at, o.id limit 1) w
    on left(t.location, length(w.uri) + 1) = w.uri || '/';

create or replace view lake.ducklake_column as
select f.id as column_id, p.begin_snapshot, p.end_snapshot, p.table_id, f.place as column_order, f.name as column_name,
       lake.ducklake_type_v1(f.type) as column_type, null::text as initial_default, null::text as default_value,
       true as nulls_allowed, f.parent_id as parent_column, null::text as default_value_type,
       null::text as default_value_dialect
from (select distinct o.table_id from lake.ducklake_span o) t
cross join lateral lake.ducklake_fields_v1(t.table_id) f
join lake.ducklake_span p on p.table_id = t.table_id and p.schema_id = f.schema_id;

-- The columns of a file by their names in it: hidden ones have no ids, and by ids DuckDB would go by places then. It keeps
-- what it has asked for, and asks later for what is not below the `next_file_id` of then: numbers rise, and none comes twice.
create or replace view lake.ducklake_column_mapping as
select s.number as mapping_id, s.table_id, 'map_by_name'::text as type
from lake.table_schema s join lake."table" t on t.id = s.table_id where t.dropped_at is null;

create or replace view lake.ducklake_name_mapping as
select f.number as mapping_id, f.id as column_id, coalesce(o.name, f.name) as source_name, f.id as target_field_id,
       f.parent_id as parent_column, false as is_partition
from lake."table" t cross join lateral lake.ducklake_fields_v1(t.id) f
left join (
    select s.table_id, s.id as schema_id, (c.told ->> 'id')::bigint as id, c.told ->> 'stored_as' as name
    from lake.table_schema s cross join lateral jsonb_array_elements(s.columns) c (told)
    where c.told ? 'stored_as'
) o on o.table_id = t.id and o.schema_id = f.schema_id and o.id = f.id
where t.dropped_at is null;

-- From when on a file is shown, and until when: from the first snapshot on that is, after the one which has brought it.
create or replace view lake.ducklake_data_file as
select f.id as data_file_id, f.table_id, b.moment as begin_snapshot, e.moment as end_snapshot, null::bigint as file_order,
       f.path, true as path_is_relative, 'parquet'::text as file_format, f.row_count as record_count,
       f.size_bytes as file_size_bytes, null::bigint as footer_size, f.id << 32 as row_id_start,
       null::bigint as partition_id, null::text as encryption_key, s.number as mapping_id,
       null::bigint as partial_max
from lake.data_file f
join lake."table" t on t.id = f.table_id
join lake.table_schema s on s.table_id = f.table_id and s.id = f.schema_id
cross join lateral (
    select case when cardinality(t.primary_key) = 0 then
        (select lake.micros_v1(n.committed_at) from lake.snapshot n
         where n.table_id = t.id and n.id >= f.added_snapshot and n.expired_at is null order by n.id limit 1)
    when t.options ->> 'ducklake' = 'head' then
        (select lake.micros_v1(n.committed_at) from lake.shown h
         join lake.snapshot n on n.table_id = h.table_id and n.id = h.snapshot_id
         where h.table_id = t.id and h.snapshot_id >= f.added_snapshot and n.expired_at is null order by h.snapshot_id limit 1)
    end as moment
    offset 0) b
cross join lateral (
    select case when cardinality(t.primary_key) = 0 then
        (select lake.micros_v1(n.committed_at) from lake.snapshot n
         where n.table_id = t.id and n.id >= f.removed_snapshot and n.expired_at is null order by n.id limit 1)
    when t.options ->> 'ducklake' = 'head' then
        (select lake.micros_v1(n.committed_at) from lake.shown h
         join lake.snapshot n on n.table_id = h.table_id and n.id = h.snapshot_id
         where h.table_id = t.id and h.snapshot_id >= f.removed_snapshot and n.expired_at is null order by h.snapshot_id limit 1)
    end as moment
    offset 0) e
where t.dropped_at is null and f.added_snapshot is not null and b.moment is not null
  and (e.moment is null or e.moment > b.moment);

create or replace view lake.ducklake_delete_file as
select m.id as delete_file_id, m.table_id, b.moment as begin_snapshot, e.moment as end_snapshot,
       m.file_id as data_file_id, m.path, true as path_is_relative, 'parquet'::text as format,
       m.row_count as delete_count, m.size_bytes as file_size_bytes, null::bigint as footer_size,
       null::text as encryption_key, null::bigint as partial_max
from lake.shown_mask m
join lake."table" t on t.id = m.table_id
cross join lateral (
    select case when cardinality(t.primary_key) = 0 then
        (select lake.micros_v1(n.committed_at) from lake.snapshot n
         where n.table_id = t.id and n.id >= m.from_snapshot and n.expired_at is null order by n.id limit 1)
    when t.options ->> 'ducklake' = 'head' then
        (select lake.micros_v1(n.committed_at) from lake.shown h
         join lake.snapshot n on n.table_id = h.table_id and n.id = h.snapshot_id
         where h.table_id = t.id and h.snapshot_id >= m.from_snapshot and n.expired_at is null order by h.snapshot_id limit 1)
    end as moment
    offset 0) b
cross join lateral (
    select case when cardinality(t.primary_key) = 0 then
        (select lake.micros_v1(n.committed_at) from lake.snapshot n
         where n.table_id = t.id and n.id >= m.until_snapshot and n.expired_at is null order by n.id limit 1)
    when t.options ->> 'ducklake' = 'head' then
        (select lake.micros_v1(n.committed_at) from lake.shown h
         join lake.snapshot n on n.table_id = h.table_id and n.id = h.snapshot_id
         where h.table_id = t.id and h.snapshot_id >= m.until_snapshot and n.expired_at is null order by h.snapshot_id limit 1)
    end as moment
    offset 0) e
where t.dropped_at is null and b.moment is not null and (e.moment is null or e.moment > b.moment);

create or replace view lake.ducklake_file_column_stats as
select f.id as data_file_id, f.table_id, c.id::bigint as column_id, null::bigint as column_size_bytes,
       null::bigint as value_count, null::bigint as null_count,
       lake.ducklake_bound_v1(c.type, f.lower_bounds[c.id]) as min_value,
       lake.ducklake_bound_v1(c.type, f.upper_bounds[c.id]) as max_value, null::boolean as contains_nan,
       null::text as extra_stats
from lake.data_file f
join lake.table_schema s on s.table_id = f.table_id and s.id = f.schema_id
cross join lateral jsonb_to_recordset(s.columns) as c (id integer, type text)
where f.added_snapshot is not null and lake.ducklake_bound_v1(c.type, f.lower_bounds[c.id]) is not null
  and lake.ducklake_bound_v1(c.type, f.upper_bounds[c.id]) is not null;

-- What DuckDB asks for and the lake has not.
create or replace view lake.ducklake_snapshot_changes as
select s.snapshot_id, ''::text as changes_made, null::text as author, null::text as commit_message,
       null::text as commit_extra_info
from lake.ducklake_snapshot s;
create or replace view lake.ducklake_table_stats as
select null::bigint as table_id, null::bigint as record_count, null::bigint as next_row_id, null::bigint as file_size_bytes
where false;
create or replace view lake.ducklake_table_column_stats as
select null::bigint as table_id, null::bigint as column_id, null::boolean as contains_null, null::boolean as contains_nan,
       null::text as min_value, null::text as max_value, null::text as extra_stats
where false;
create or replace view lake.ducklake_view as
select null::bigint as view_id, null::uuid as view_uuid, null::bigint as begin_snapshot, null::bigint as end_snapshot,
       null::bigint as schema_id, null::text as view_name, null::text as dialect, null::text as sql,
       null::text as column_aliases
where false;
create or replace view lake.ducklake_tag as
select null::bigint as object_id, null::bigint as begin_snapshot, null::bigint as end_snapshot, null::text as key,
       null::text as value
where false;
create or replace view lake.ducklake_column_tag as
select null::bigint as table_id, null::bigint as column_id, null::bigint as begin_snapshot, null::bigint as end_snapshot,
       null::text as key, null::text as value
where false;
create or replace view lake.ducklake_inlined_data_tables as
select null::bigint as table_id, null::text as table_name, null::bigint as schema_version
where false;
create or replace view lake.ducklake_macro as
select null::bigint as schema_id, null::bigint as macro_id, null::text as macro_name, null::bigint as begin_snapshot,
       null::bigint as end_snapshot
where false;
create or replace view lake.ducklake_macro_impl as
select null::bigint as macro_id, null::bigint as impl_id, null::text as dialect, null::text as sql, null::text as type
where false;
create or replace view lake.ducklake_macro_parameters as
select null::bigint as macro_id, null::bigint as impl_id, null::bigint as column_id, null::text as parameter_name,
       null::text as parameter_type, null::text as default_value, null::text as default_value_type
where false;
create or replace view lake.ducklake_partition_info as
select null::bigint as partition_id, null::bigint as table_id, null::bigint as begin_snapshot, null::bigint as end_snapshot
where false;
create or replace view lake.ducklake_partition_column as
select null::bigint as partition_id, null::bigint as table_id, null::bigint as partition_key_index,
       null::bigint as column_id, null::text as transform
where false;
create or replace view lake.ducklake_file_partition_value as
select null::bigint as data_file_id, null::bigint as table_id, null::bigint as partition_key_index,
       null::text as partition_value
where false;
create or replace view lake.ducklake_file_variant_stats as
select null::bigint as data_file_id, null::bigint as table_id, null::bigint as column_id, null::text as variant_path,
       null::text as shredded_type, null::bigint as column_size_bytes, null::bigint as value_count,
       null::bigint as null_count, null::text as min_value, null::text as max_value, null::boolean as contains_nan,
       null::text as extra_stats
where false;
create or replace view lake.ducklake_files_scheduled_for_deletion as select f.* from lake.refuse_deletion_v1() f;
create or replace view lake.ducklake_schema_versions as
select null::bigint as begin_snapshot, null::bigint as schema_version, null::bigint as table_id
where false;
create or replace view lake.ducklake_sort_info as
select null::bigint as sort_id, null::bigint as table_id, null::bigint as begin_snapshot, null::bigint as end_snapshot
where false;
create or replace view lake.ducklake_sort_expression as
select null::bigint as sort_id, null::bigint as table_id, null::bigint as sort_key_index, null::text as expression,
       null::text as dialect, null::text as sort_direction, null::text as null_order
where false;
