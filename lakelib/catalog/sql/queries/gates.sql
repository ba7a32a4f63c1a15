-- Nobody else gives out versions of this name until the transaction's end.
-- name: lock_suite_name
select pg_advisory_xact_lock(hashtextextended('lake.suite ' || %(name)s, 0));

-- A suite under the next version of its name; nothing if it is registered under this name already.
-- name: register_suite
insert into lake.suite (name, version, hash, text, critical_checks, registered_by)
select %(name)s, coalesce(max(version), 0) + 1, %(hash)s, %(text)s, %(critical_checks)s,
       coalesce(%(by)s::text, session_user::text)
from lake.suite where name = %(name)s
on conflict (name, hash) do nothing;

-- A registered suite.
-- name: find_suite
select * from lake.suite where name = %(name)s and hash = %(hash)s;

-- The newest version of a suite.
-- name: find_newest_suite
select * from lake.suite where name = %(name)s order by version desc limit 1;

-- The suite that a commit's table requires by hash.
-- name: find_suite_required_of
select s.* from lake.commit c
join lake.gate_requirement r on r.table_id = c.table_id and r.released_at is null
join lake.suite s on s.name = r.suite_name and s.version = r.suite_version
where c.id = %(commit_id)s;

-- All registered suites, the newest version of a name first.
-- name: list_suites
select * from lake.suite order by name, version desc;

-- What the table requires stays so until the transaction's end, and nobody publishes to it meanwhile.
-- name: lock_gated_table
select id from lake."table" where id = %(table_id)s and dropped_at is null for no key update;

-- What a table requires: the name of its gate, '' for none, and the version of a suite that it requires by hash.
-- name: find_required_gate
select coalesce(r.suite_name, t.options ->> 'required_gate', '') as name, r.suite_version as version
from lake."table" t left join lake.gate_requirement r on r.table_id = t.id and r.released_at is null
where t.id = %(table_id)s;

-- The table requires a registered suite, unless that has no critical check.
-- name: insert_requirement
insert into lake.gate_requirement (table_id, suite_name, suite_version, suite_hash, required_by, required_at)
select %(table_id)s, s.name, s.version, s.hash, coalesce(%(by)s::text, session_user::text), clock_timestamp()
from lake.suite s where s.name = %(name)s and s.version = %(version)s and s.critical_checks > 0
returning *;

-- The table does not require its suite any more.
-- name: release_requirement
update lake.gate_requirement
set released_by = coalesce(%(by)s::text, session_user::text), release_reason = %(reason)s,
    released_at = clock_timestamp()
where table_id = %(table_id)s and released_at is null
returning id;

-- A gate was required by its name alone, and is not any more.
-- name: insert_released_name
insert into lake.gate_requirement (table_id, suite_name, released_by, release_reason, released_at)
values (%(table_id)s, %(name)s, coalesce(%(by)s::text, session_user::text), %(reason)s, clock_timestamp());

-- The table's options tell the name of the gate: clients that know no registered suites go by it.
-- name: set_required_name
update lake."table"
set options = options - 'required_gate' || jsonb_strip_nulls(jsonb_build_object('required_gate', %(name)s::text))
where id = %(table_id)s;

-- What a table requires and has required, the newest first.
-- name: list_requirements
select * from lake.gate_requirement where table_id = %(table_id)s order by id desc;
