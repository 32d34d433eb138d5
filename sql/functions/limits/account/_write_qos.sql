-- odc._write_qos: apply the changes of a request to a QOS; the rest stays.
-- Arguments  p_ask  any of description, priority, restricted, deny_on_limit, usage_factor, preempts, preempt_mode,
--                   exempt_s, grace_s, idle_warn_s, idle_release_s, limits
-- Raises     OD004 UnknownQos, OD010 BadRequest: it would preempt itself, directly or through others; a value out of
--            range
create or replace function odc._write_qos(p_id integer, p_ask jsonb)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_name     text := (select name from qos where id = p_id);
    v_preempts integer[] := coalesce(_find_qos(_words(nullif(p_ask -> 'preempts', 'null'))), '{}');
    v_circle   text;
begin
    with recursive victim as (
        select q.id, array[q.id] as path from qos as q where q.id = any (v_preempts)
         union all
        select n.id, v.path || n.id
          from victim as v
          join qos as p on p.id = v.id and p.id <> p_id
          join qos as n on n.id = any (p.preempts)
         where n.id <> all (v.path)
    )
    select string_agg(q.name, ', which preempts ' order by u.n) into v_circle
      from (select v.path from victim as v where v.id = p_id order by cardinality(v.path) limit 1) as c
     cross join unnest(c.path) with ordinality as u (id, n)
      join qos as q on q.id = u.id;
    if v_circle is not null then
        raise exception using errcode = 'OD010',
            message = format('QOS "%s" would preempt %s', v_name, case when v_circle = v_name then 'itself' else v_circle end),
            hint = 'Their jobs would preempt one another forever. Remove one direction.';
    end if;
    update qos as q
       set description = case when p_ask ? 'description' then p_ask ->> 'description' else q.description end,
           priority = coalesce((p_ask ->> 'priority')::integer, q.priority),
           restricted = coalesce((p_ask ->> 'restricted')::boolean, q.restricted),
           deny_on_limit = coalesce((p_ask ->> 'deny_on_limit')::boolean, q.deny_on_limit),
           usage_factor = coalesce((p_ask ->> 'usage_factor')::numeric, q.usage_factor),
           preempts = case when p_ask ? 'preempts' then v_preempts else q.preempts end,
           preempt_mode = coalesce(p_ask ->> 'preempt_mode', q.preempt_mode),
           exempt_s = coalesce((p_ask ->> 'exempt_s')::integer, q.exempt_s),
           grace_s = coalesce((p_ask ->> 'grace_s')::integer, q.grace_s),
           idle_warn_s = coalesce((p_ask ->> 'idle_warn_s')::integer, q.idle_warn_s),
           idle_release_s = coalesce((p_ask ->> 'idle_release_s')::integer, q.idle_release_s)
     where q.id = p_id;
    perform _write_limits('qos', p_id, coalesce(nullif(p_ask -> 'limits', 'null'), '{}'));
exception
    when check_violation or numeric_value_out_of_range then
        raise exception using errcode = 'OD010',
            message = format('QOS "%s": one of these values is out of range: %s', v_name, p_ask - 'limits'),
            hint = 'Priority 0 to 1000000000, usage factor 0 to 1000, times not negative, grace at most a day; '
                   'preempt mode requeue or cancel. Users of idle reservations are notified after 10 minutes or more (0: never); the reservations end later, or never.';
end;
$$;
