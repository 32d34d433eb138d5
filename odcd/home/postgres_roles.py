"""The roles of an embedded PostgreSQL: the daemon's role, which is not a superuser, and the
server's superuser.

The daemon's role owns the database and the schema. It cannot create roles or access the server's
files and programs. It can read the server's statistics for the metrics.
"""

from __future__ import annotations

ROLE = "odc"
ADMIN_ROLE = "odc_admin"
"""The superuser that initdb creates; only PostgreSQL's own account may log in as it."""
REPORT_ROLE = "odc_report"
DATABASE = "odc"
MADE = "odc_roles"
"""A file in the data folder: it exists once the roles are set up like this. Earlier versions have
none."""
VERSION = "1\n"

_ROLES = f"""
do $$ begin
    if not exists (select from pg_roles where rolname = '{ROLE}') then
        create role {ROLE} login;
    end if;
    if not exists (select from pg_roles where rolname = '{REPORT_ROLE}') then
        create role {REPORT_ROLE} nologin;
    end if;
    grant {REPORT_ROLE} to {ROLE} with admin option;
    grant pg_read_all_stats to {ROLE};
end $$
"""

NEW = (_ROLES, f"create database {DATABASE} owner {ROLE}")

# A session of the role that initdb created can neither drop its superuser right nor rename it. So
# its name is changed in the catalog, and a new role gets the old name.
_RENAME = f"""
update pg_authid set rolname = '{ADMIN_ROLE}' where oid = 10 and rolname = '{ROLE}'
"""

# Not `reassign owned`: it refuses this role, which also owns PostgreSQL's own objects.
_GIVE = f"""
do $$
declare
    v_statement text;
begin
    for v_statement in
        with ours (oid, name) as (
            select oid, nspname from pg_namespace
             where nspname in ('odc', 'odc_report', 'public')
        )
        select format('alter schema %I owner to {ROLE}', n.nspname)
          from pg_namespace as n where n.nspname in ('odc', 'odc_report') and n.nspowner = 10
        union all
        select format('alter %s %I.%I owner to {ROLE}',
                      case c.relkind when 'v' then 'view' when 'm' then 'materialized view'
                                     when 'S' then 'sequence' else 'table' end,
                      o.name, c.relname)
          from pg_class as c join ours as o on o.oid = c.relnamespace
         where c.relowner = 10 and c.relkind in ('r', 'p', 'v', 'm', 'S')
           -- One of a column goes with its table.
           and not exists (select from pg_depend as d
                            where d.classid = 'pg_class'::regclass and d.objid = c.oid
                              and d.refclassid = 'pg_class'::regclass and d.refobjsubid > 0
                              and d.deptype in ('a', 'i') and c.relkind = 'S')
        union all
        select format('alter routine %s owner to {ROLE}', p.oid::regprocedure)
          from pg_proc as p join ours as o on o.oid = p.pronamespace where p.proowner = 10
        union all
        select format('alter type %I.%I owner to {ROLE}', o.name, t.typname)
          from pg_type as t join ours as o on o.oid = t.typnamespace
          left join pg_class as c on c.oid = t.typrelid
         where t.typowner = 10 and (t.typtype in ('e', 'd', 'r') or c.relkind = 'c')
    loop
        execute v_statement;
    end loop;
end $$
"""

FOUND = f"""
select unnest(setconfig) from pg_db_role_setting
 where setrole = (select oid from pg_roles where rolname = '{ROLE}')
    or setrole = 0 and setdatabase = (select oid from pg_database where datname = '{DATABASE}')
 order by 1
"""
"""Settings with which the daemon's sessions start, in addition to the server's. The role can set
most of them for itself, and for the database, which it owns."""
RESET = (
    f"alter role {ROLE} reset all",
    f"alter role {ROLE} in database {DATABASE} reset all",
    f"alter database {DATABASE} reset all",
)

SPLIT = (
    ("postgres", (_RENAME, _ROLES, f"alter database {DATABASE} owner to {ROLE}")),
    (DATABASE, (_GIVE,)),
)
"""Databases and the statements to run there, for a home of an earlier version. Each may have run
already."""
