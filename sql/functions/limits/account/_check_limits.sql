-- odc._check_limits: refuse a job that exceeds a limit by itself: it could never start, however idle the cluster is.
-- It uses the current limits. If the QOS has deny_on_limit off, the job is accepted and waits for a change.
-- Arguments  p_shape    its id may be null
--            p_limit_s  its time limit
-- Raises     OD009 LimitExceeded
create or replace function odc._check_limits(
    p_shape shape, p_uid integer, p_user text, p_account_id integer, p_qos_id integer, p_limit_s integer)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_over record;
    v_holder text;
begin
    if not exists (select from resource_limit where what <> 'submitted')
       or not (select deny_on_limit from qos where id = p_qos_id) then
        return;
    end if;
    select l.*, n.need, case when l.what = 'gpu_minutes' then l.value * 60000 else l.value end as most into v_over
      from _limits_of(array[p_uid], array[p_account_id], array[p_qos_id], array[p_shape.partition_ids::text]) as l
      join qos as q on q.id = p_qos_id
     cross join lateral _shape_amounts(p_shape) as a
     cross join lateral (select _limit_need(l.what, a.nodes, a.gpus, a.cpus, p_limit_s, q.usage_factor) as need) as n
     where l.what <> 'submitted' and n.need > case when l.what = 'gpu_minutes' then l.value * 60000 else l.value end
     order by l.per <> 'job', l.scope, l.per, l.what
     limit 1;
    if not found then
        return;
    end if;
    select replace(h.holder, 'user with uid ' || p_uid, 'user ' || p_user) into v_holder
      from _limit_holder(v_over.scope, v_over.scope_id, v_over.per, v_over.b_account, v_over.b_uid) as h;
    raise exception using errcode = 'OD009',
        message = format(
            case v_over.what when 'wall_s' then 'a time limit of %s is more than the %s allowed for %s (%s)'
                             when 'gpu_minutes' then '%s (GPUs times time limit) is more than the %s allowed for %s (%s)'
                             when 'jobs' then '%3$s may run no jobs (%4$s)'
                             else '%s is more than the %s allowed for %s (%s)' end,
            _limit_amount(v_over.what, v_over.need), _limit_amount(v_over.what, v_over.most), v_holder,
            _limit_reason(v_over.scope, v_over.per, v_over.what)),
        hint = coalesce(
            (select format('Request less, or use another QOS: %s.', string_agg(q.name, ', ' order by q.name))
               from _allowed_qos(p_uid, p_account_id, p_shape.partition_ids) as m
               join qos as q on q.id = any (m.allowed) and q.id <> p_qos_id
             where v_over.scope = 'qos'
             having count(*) > 0),
            'Request less; an operator can change the limit.');
end;
$$;
