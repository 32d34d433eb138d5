-- odc.delete_licence: delete a licence, by an operator.
-- Returns    the deleted licence, as JSON text
-- Locks      the turn; licence
-- Raises     OD013 NotOwner; OD025 UnknownLicence; OD012 WrongState: jobs use it or wait for it
create or replace function odc.delete_licence(p_actor jsonb, p_name text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_licence  json;
    v_count integer;
    v_jobs  text;
begin
    perform _take_turn(p_now);
    perform _check_operator(p_actor, 'delete licences');
    perform from licence where name = p_name for update;
    if not found then
        perform _check_licences(jsonb_build_object(p_name, 1));
    end if;
    v_licence := (select l.item from json_array_elements(list_licences()::json) as l (item) where l.item ->> 'name' = p_name);
    select count(*), string_agg(q.job_id::text, ', ' order by q.job_id) filter (where q.n <= 10) into v_count, v_jobs
      from (select q.job_id, row_number() over (order by q.job_id) as n
              from (select r.job_id, r.shape_id from running as r union all select p.job_id, p.shape_id from pending as p) as q
              join shape as s on s.id = q.shape_id
             where s.licences ? p_name) as q;
    if v_count > 0 then
        raise exception using errcode = 'OD012',
            message = format('licence "%s" is in use or needed by %s: %s%s', p_name,
                             case when v_count = 1 then '1 job' else v_count || ' jobs' end, v_jobs,
                             case when v_count > 10 then ', …' else '' end),
            hint = format('Cancel them first, or prevent new starts: `odcctl licence set %s 0`.', p_name);
    end if;
    delete from licence where name = p_name;
    insert into event (at, kind, actor, detail)
    values (p_now, 'licence_deleted', p_actor ->> 'user', jsonb_build_object('name', p_name));
    return v_licence;
end;
$$;
