-- odc.refuse_login: record a refused login in the audit log.
-- Arguments  p_detail  {reason, from, user, account, role}, as far as verified; no unverified claims of the caller
create or replace function odc.refuse_login(p_detail jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    insert into event (at, kind, actor, detail) values (p_now, 'login_refused', 'odcd', p_detail);
end;
$$;
