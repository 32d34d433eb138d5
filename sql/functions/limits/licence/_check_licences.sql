-- odc._check_licences: refuse licences that do not exist, or more of them than exist.
-- Arguments  p_licences  {"name": count, …}; null: none
-- Raises     OD025 UnknownLicence, OD008 NeverFits
create or replace function odc._check_licences(p_licences jsonb)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_wrong record;
begin
    select n.name, n.value::bigint as asked, l.total into v_wrong
      from jsonb_each_text(p_licences) as n (name, value)
      left join licence as l on l.name = n.name
     where l.total is null or l.total < n.value::bigint
     order by l.total is not null, n.name
     limit 1;
    if not found then
        return;
    end if;
    raise exception using
        errcode = case when v_wrong.total is null then 'OD025' else 'OD008' end,
        message = case when v_wrong.total is null then format('licence "%s" does not exist', v_wrong.name)
                       else format('the job requests %s of licence "%s", but the total is %s', v_wrong.asked, v_wrong.name,
                                   v_wrong.total) end,
        hint = coalesce('Licences: ' || (select string_agg(format('%s (%s)', l.name, l.total), ', ' order by l.name)
                                           from licence as l) || '.', 'There are no licences; operators create them.');
end;
$$;
