-- odc.fence_locks: leave advisory locks, large objects and temporary tables of this database to odcd's role: the owner of
-- schema odc, and whoever owns the database. PostgreSQL gives them to every login. So a program that draws reports could
-- hold the lock that passes, starts and ends take, and fill the disk, also with write-ahead log. grant_reports calls it
-- for a superuser; any other role may not revoke the functions of PostgreSQL.
-- Locks      rows of pg_proc and pg_database, when something is to be revoked
-- Returns    whether the role odc_report can use none of them
create or replace function odc.fence_locks()
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_function regprocedure;
    v_ours     regrole := (select nspowner from pg_namespace where nspname = 'odc');
    v_super    boolean := (select rolsuper from pg_roles where rolname = current_user);
    v_open     boolean := has_database_privilege('odc_report', current_database(), 'temporary');
begin
    if v_open and v_super then
        execute format('revoke temporary on database %I from public', current_database());
        execute format('grant temporary on database %I to %s, pg_database_owner', current_database(), v_ours);
        v_open := false;
    end if;
    for v_function in
        select f from _open_functions() as f order by 1
    loop
        if not v_super then
            return false;
        end if;
        execute format('revoke execute on function %s from public', v_function);
        execute format('grant execute on function %s to %s, pg_database_owner', v_function, v_ours);
    end loop;
    return not v_open;
end;
$$;
