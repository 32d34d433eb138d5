-- odc.refuse_login: tell the audit log of a login that was refused.
-- Arguments  p_detail  {reason, from, user, account, role}, as far as known; nothing that the caller alone claims
create or replace function odc.refuse_login(p_detail jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    insert into event (at, kind, actor, detail) values (p_now, 'login_refused', 'odcd', p_detail);
end;
$$;
