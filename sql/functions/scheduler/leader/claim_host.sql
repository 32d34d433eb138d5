-- odc.claim_host: record this machine as the one whose processes the local executor runs.
-- Arguments  p_machine_id, p_host_name  this machine
-- Raises     OD021 OtherHost: the database belongs to another machine's local executor and has jobs there
-- Locks      term
create or replace function odc.claim_host(p_term bigint, p_machine_id text, p_host_name text)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_owner local_host;
begin
    perform _hold_term(p_term);
    select * into v_owner from local_host for update;
    if not found then
        insert into local_host (machine_id, host_name) values (p_machine_id, p_host_name);
    elsif v_owner.machine_id <> p_machine_id then
        if exists (select from running) then
            raise exception using errcode = 'OD021',
                message = format('this database runs jobs with the local executor on host "%s"; this is "%s"',
                                 v_owner.host_name, p_host_name),
                hint = format('Stop the jobs on "%s" first, or give this daemon a database of its own.',
                              v_owner.host_name);
        end if;
        update local_host set machine_id = p_machine_id, host_name = p_host_name;
    end if;
end;
$$;
