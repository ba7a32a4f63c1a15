-- What a nested type is made of, in order: a list's `element`, a map's `key` and `value`, a struct's fields.
create or replace function lake.type_parts_v1(type_text text) returns table (place bigint, name text, type text)
language plpgsql immutable strict as $$
declare
    inside constant text := substr(type_text, strpos(type_text, '<') + 1, length(type_text) - strpos(type_text, '<') - 1);
    part text := '';
    depth integer := 0;
    is_quoted boolean := false;
    parts text[] := '{}';
    letter text;
    matched text[];
begin
    foreach letter in array string_to_array(inside, null) loop
        is_quoted := is_quoted <> (letter = '`');
        if not is_quoted then
            depth := depth + case when letter in ('<', '(') then 1 when letter in ('>', ')') then -1 else 0 end;
        end if;
        if letter = ',' and depth = 0 and not is_quoted then
            parts := parts || part;
            part := '';
        else
            part := part || letter;
        end if;
    end loop;
    parts := parts || part;
    if type_text like 'array<%' then
        return query select 1::bigint, 'element'::text, parts[1];
    elsif type_text like 'map<%' then
        return query select 1::bigint, 'key'::text, parts[1] union all select 2, 'value', parts[2];
    else
        for i in 1 .. cardinality(parts) loop
            matched := regexp_match(parts[i], '^(`(?:[^`]|``)*`|[^:]*):(.*)$');
            return query select i::bigint, case when matched[1] like '`%'
                                                then replace(substr(matched[1], 2, length(matched[1]) - 2), '``', '`')
                                                else matched[1] end, matched[2];
        end loop;
    end if;
end $$;

-- A type as DuckLake calls it. What a nested one is made of are columns of their own.
create or replace function lake.ducklake_type_v1(type_text text) returns text
language sql immutable strict as $$
    select case
        when type_text like 'array<%' then 'list'
        when type_text like 'map<%' then 'map'
        when type_text like 'struct<%' then 'struct'
        when type_text like 'decimal(%' then type_text
        else case type_text when 'tinyint' then 'int8' when 'smallint' then 'int16' when 'int' then 'int32'
                            when 'bigint' then 'int64' when 'float' then 'float32' when 'double' then 'float64'
                            when 'string' then 'varchar' when 'binary' then 'blob' when 'timestamp' then 'timestamptz'
                            when 'timestamp_ntz' then 'timestamp' else type_text end
    end
$$;

-- The columns of all versions of a table's schema, and what nested ones are made of: with ids of their own above all
-- columns', which stay what they are, for versions are only added.
create or replace function lake.ducklake_fields_v1(own_table bigint)
returns table (schema_id integer, number bigint, id bigint, parent_id bigint, place bigint, name text, type text)
language sql stable as $$
    with recursive field as (
        select s.id as schema_id, s.number, array[c.id] as path, c.id::bigint as column_id, c.place, c.name, c.type
        from lake.table_schema s
        cross join lateral rows from (jsonb_to_recordset(s.columns) as (id text, name text, type text)) with ordinality
            as c (id, name, type, place)
        where s.table_id = own_table
        union all
        select f.schema_id, f.number, f.path || p.name, f.column_id, p.place, p.name, p.type
        from field f cross join lateral lake.type_parts_v1(f.type) p
        where f.type like '%<%>'
    ), numbered as (
        select f.path, 1000000 + row_number() over (order by min(f.schema_id), f.path) as id
        from field f where cardinality(f.path) > 1 group by f.path
    )
    select f.schema_id, f.number, coalesce(n.id, f.column_id),
           case when cardinality(f.path) > 1 then coalesce(o.id, f.column_id) end, f.place, f.name, f.type
    from field f
    left join numbered n on n.path = f.path
    left join numbered o on o.path = f.path[: cardinality(f.path) - 1]
$$;

-- The integer of a sortable encoding.
create or replace function lake.sortable_integer_v1(bound bytea) returns bigint
language sql immutable strict as $$
    select (('x' || encode(bound, 'hex'))::bit(64) # x'8000000000000000')::bigint
$$;

-- A bound as text that DuckDB casts back exactly; null where there is none, it was cut, or its type has no such text.
create or replace function lake.ducklake_bound_v1(type_text text, bound bytea) returns text
language sql immutable strict as $$
    select case
        when type_text = 'string' and octet_length(bound) < 64 then convert_from(bound, 'UTF8')
        when type_text in ('tinyint', 'smallint', 'int', 'bigint') then lake.sortable_integer_v1(bound)::text
        when type_text = 'date' and lake.sortable_integer_v1(bound) between -700000 and 2900000
            then to_char(date '1970-01-01' + lake.sortable_integer_v1(bound)::integer, 'YYYY-MM-DD')
        when type_text in ('timestamp', 'timestamp_ntz')
             and lake.sortable_integer_v1(bound) between -60000000000000000 and 250000000000000000
            then to_char(timestamp '1970-01-01' + make_interval(days => floor(lake.sortable_integer_v1(bound) / 86400000000.0)::integer)
                         + mod(mod(lake.sortable_integer_v1(bound), 86400000000) + 86400000000, 86400000000) * interval '1 microsecond',
                         'YYYY-MM-DD HH24:MI:SS.US') || case type_text when 'timestamp' then '+00' else '' end
    end
$$;

-- A moment as DuckLake's views number it.
create or replace function lake.micros_v1(moment timestamptz) returns bigint
language sql immutable strict as $$
    select (extract(epoch from moment) * 1000000)::bigint
$$;

-- A location as DuckDB reads it.
create or replace function lake.ducklake_path_v1(uri text) returns text
language sql immutable strict as $$
    select case when uri like 'file://%' then substr(uri, 8) else uri end
$$;

-- Who has DuckLake look for files to delete is refused: those that the views do not name may be staged, or a table's that they
-- do not show.
create or replace function lake.refuse_deletion_v1()
returns table (data_file_id bigint, path text, path_is_relative boolean, schedule_start timestamptz)
language plpgsql as $$
begin
    raise insufficient_privilege using message = 'the files of this lake are deleted by `lake vacuum` alone';
end $$;
