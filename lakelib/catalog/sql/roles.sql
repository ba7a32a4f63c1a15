-- The roles of one catalog: groups of the whole server, so their names have the database's. Each may be run again. What
-- is in curly brackets is filled in by lakelib.catalog.roles.
-- name: make_groups
do $lake$
declare
    name text;
begin
    foreach name in array array[{group_names}] loop
        if not exists (select from pg_catalog.pg_roles r where r.rolname = name) then
            execute format('create role %I nologin', name);
        end if;
    end loop;
end $lake$;
grant {reader} to {writer}, {maintainer};
grant {writer} to {publisher};
grant {publisher}, {maintainer} to {owner};
grant {reader}, {writer}, {publisher}, {maintainer} to {owner} with admin option;

-- The catalog's own role owns it, so that all owners may migrate it, and its functions run with the rights of a role that
-- is nobody's login.
-- name: take_over
do $lake$
declare
    before record;
    found record;
    new_owner constant oid := (select r.oid from pg_catalog.pg_roles r where r.rolname = {owner_name});
begin
    select r.oid, r.rolname, r.rolsuper into before
    from pg_catalog.pg_namespace n join pg_catalog.pg_roles r on r.oid = n.nspowner where n.nspname = 'lake';
    if before.oid <> new_owner then
        if not before.rolsuper then
            execute format('grant %I to %I', {owner_name}, before.rolname);
            execute format('grant create on database %I to %I', current_database(), {owner_name});
        end if;
        execute format('alter schema lake owner to %I', {owner_name});
    end if;
    -- The identity functions run as the owner from now on, and a copied data folder is told by a file's time.
    if (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user) then
        execute format('grant execute on function pg_catalog.pg_stat_file(text) to %I', {owner_name});
    end if;
    for found in select c.oid::regclass as name from pg_catalog.pg_class c
                 where c.relnamespace = 'lake'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
                   and c.relowner <> new_owner loop
        execute format('alter table %s owner to %I', found.name, {owner_name});
    end loop;
    for found in select p.oid::regprocedure as name from pg_catalog.pg_proc p
                 where p.pronamespace = 'lake'::regnamespace and p.proowner <> new_owner loop
        execute format('alter routine %s owner to %I', found.name, {owner_name});
    end loop;
end $lake$;

-- Tables are for reading. Whatever changes one is a function, and each is for some.
-- name: set_privileges
revoke all on schema lake from public;
revoke all on all tables in schema lake from public;
revoke all on all functions in schema lake from public;
grant usage on schema lake to {reader};
grant select on all tables in schema lake to {reader};
grant execute on function
    lake.has_right_v1, lake.listen_v1, lake.take_lease_v1, lake.take_range_v1, lake.renew_lease_v1, lake.release_lease_v1, lake.find_moment_v1,
    lake.holds_past_v1, lake.ended_tags_v1, lake.definition_v1, lake.server_v1, lake.check_identity_v1,
    lake.find_rollback_v1, lake.rolled_back_v1, lake.type_parts_v1, lake.ducklake_type_v1, lake.ducklake_fields_v1,
    lake.ducklake_bound_v1, lake.sortable_integer_v1, lake.micros_v1, lake.ducklake_path_v1,
    lake.refuse_deletion_v1
    to {reader};
grant execute on function
    lake.stage_v1, lake.amend_v1, lake.publish_v1, lake.end_v1, lake.turn_v1, lake.release_turn_v1,
    lake.bind_warehouse_v1, lake.tell_v1
    to {writer}, {maintainer};
grant execute on function
    lake.retarget_v1, lake.reserve_schema_v1, lake.overtake_appends_v1, lake.forget_success_file_v1,
    lake.make_consumer_v1, lake.publish_advancing_v1
    to {writer};
grant execute on function lake.remove_consumer_v1 to {writer}, {maintainer};
grant execute on function
    lake.judge_v1, lake.discard_v1, lake.set_tag_v2, lake.delete_tag_v1, lake.mark_partition_v1
    to {publisher};
grant execute on function
    lake.drop_spent_leases_v1, lake.expire_commits_v1, lake.expire_tags_v1, lake.expire_snapshots_v1,
    lake.forget_dependencies_v1, lake.queue_files_of_commits_v2, lake.queue_removed_files_v1, lake.forget_deleted_files_v1, lake.mark_orphans_v1,
    lake.retire_dropped_v1, lake.queue_files_of_dropped_v1, lake.forget_dropped_v1, lake.reset_marks_of_dropped_v1,
    lake.forget_success_file_v1, lake.forget_samples_v1, lake.keep_masks_v1, lake.forget_masks_v1, lake.show_v1,
    lake.forget_shown_v1
    to {maintainer};
