-- The rights of the user who has logged in.
-- name: load_rights
select array(select name from unnest(array['read', 'write', 'judge', 'maintain', 'own']) as known (name)
             where lake.has_right_v1(name)) as rights;

-- The schema's owner, and whether the user acts for it; nothing where there is no catalog yet.
-- name: find_schema_owner
select r.rolname as name, pg_has_role(current_user, r.oid, 'member') as is_own
from pg_catalog.pg_namespace n join pg_catalog.pg_roles r on r.oid = n.nspowner where n.nspname = 'lake';

-- The groups of a catalog's roles that are there.
-- name: find_groups
select rolname as name from pg_catalog.pg_roles where rolname = any(%(names)s);

-- Who was given which of these groups, and by whom. Who has made a group administers it, and need not be in it: where the
-- server tells the two apart, he is left out.
-- name: list_members
select g.rolname as "group", u.rolname as "user", b.rolname as grantor
from pg_catalog.pg_auth_members m
join pg_catalog.pg_roles g on g.oid = m.roleid
join pg_catalog.pg_roles u on u.oid = m.member
left join pg_catalog.pg_roles b on b.oid = m.grantor
where g.rolname = any(%(names)s) and u.rolname <> all(%(names)s)
  and coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, true)
order by g.rolname, u.rolname, b.rolname;

-- Nobody but the schema's owner executes its functions unless told.
-- name: close_functions
revoke all on all functions in schema lake from public;
