-- odc.check_host: refuse a local executor if another machine's local executor leads or runs jobs on this database.
-- Raises     OD021 OtherHost
create or replace function odc.check_host(p_machine_id text, p_host_name text)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_owner text;
begin
    select o.host_name into v_owner
      from local_host as o
     where o.machine_id <> p_machine_id
       and (exists (select from running) or exists (select from read_term() where not vacant));
    if found then
        raise exception using errcode = 'OD021',
            message = format('this database belongs to the local executor on host "%s"; this is "%s"',
                             v_owner, p_host_name),
            hint = format('Stop odcd on "%s" first, or give this daemon a database of its own.', v_owner);
    end if;
end;
$$;
