-- odc._why_limits: the limits that keep a pending job from starting, and the running jobs that use them up.
-- Returns    per limit one row with the whole sentence and until: when the time limits of those jobs release enough of
--            it, null if that is not in sight; then a row per job that uses it, soonest end first, at most 16.
--            No rows: no limit applies.
create or replace function odc._why_limits(p_job_id bigint, p_now timestamptz)
returns table (cause text, reason text, "text" text, "limit" text, job_id bigint, gpus integer, until timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    l      record;
    h      record;
    v_jobs record;
    v_name text;
begin
    if not exists (select from resource_limit) then
        return;
    end if;
    for l in
        with held as materialized (
            select m.*, n.need, row_number() over () as n,
                   case when m.what = 'gpu_minutes' then m.value * 60000 else m.value end as most
              from pending as p
              join shape as s on s.id = p.shape_id
              join qos as q on q.id = p.qos_id
             cross join lateral _limits_of(array[p.uid], array[p.account_id], array[p.qos_id], array[s.partition_ids::text]) as m
             cross join lateral _shape_amounts(s) as a
             cross join lateral (select _limit_need(m.what, a.nodes, a.gpus, a.cpus, p.time_limit_s, q.usage_factor)) as n (need)
             where p.job_id = p_job_id and m.what <> 'submitted' and n.need > 0
        )
        select e.*, coalesce(u.used, 0) as used
          from held as e
          left join _limit_use(
               p_now, array(select scope from held order by n), array(select scope_id from held order by n),
               array(select per from held order by n), array(select what from held order by n),
               array(select b_account from held order by n), array(select b_uid from held order by n)) as u on u.n = e.n
         where e.need + case when e.per = 'job' then 0 else coalesce(u.used, 0) end > e.most
         order by e.per <> 'job', e.n
    loop
        v_name := _limit_reason(l.scope, l.per, l.what);
        select * into h from _limit_holder(l.scope, l.scope_id, l.per, l.b_account, l.b_uid);
        cause := 'limit';  reason := v_name;  "limit" := v_name;  job_id := null;  gpus := null;  until := null;
        if l.per = 'job' then
            "text" := format('it needs %s, more than the %s allowed for %s; it cannot start unless one of the two is changed',
                             case l.what when 'wall_s' then 'a time limit of ' else '' end || _limit_amount(l.what, l.need),
                             _limit_amount(l.what, l.most), h.holder);
            return next;
            continue;
        end if;
        select array_agg(r.job_id order by r.ends_at, r.job_id) as ids, array_agg(r.gpus order by r.ends_at, r.job_id) as gpus,
               array_agg(r.ends_at order by r.ends_at, r.job_id) as ends,
               min(r.ends_at) filter (where r.freed >= l.need - (l.most - l.used)) as opens
          into v_jobs
          from (select a.job_id, a.ends_at, a.gpus,
                       sum(case l.what when 'jobs' then 1 when 'gpus' then a.gpus when 'cpus' then a.cpus
                                       when 'nodes' then a.nodes else 0 end) over (order by a.ends_at, a.job_id) as freed
                  from (select r.job_id, r.ends_at, r.node_count as nodes, sum(a.gpus) as gpus, sum(a.cpus) as cpus
                          from running as r join allocation as a on a.job_id = r.job_id
                         where (h.uid is null or r.uid = h.uid) and (h.qos_id is null or r.qos_id = h.qos_id)
                           and (h.account_ids is null or r.account_id = any (h.account_ids))
                           and (h.partition_id is null or r.partition_id = h.partition_id)
                         group by r.job_id, r.ends_at, r.node_count) as a) as r;
        "text" := format(case when l.what = 'gpu_minutes' then '%s has used, or reserved for running jobs, %s of the %s allowed'
                              else '%s has %s of the %s allowed' end,
                         h.holder, case when l.what = 'gpu_minutes' then l.used / 60000 else l.used end,
                         _limit_amount(l.what, l.most))
               || case when l.what = 'jobs' then ''
                       else format(', and this job needs %s',
                                   case when l.need >= 9000000000000000000 then 'a time limit'
                                        when l.what = 'gpu_minutes' then ((l.need + 59999) / 60000)::text else l.need::text end) end
               || case when l.need > l.most then ': more than the whole limit'
                       when v_jobs.ids is null then ''
                       else format('; %s; %s',
                                   case when cardinality(v_jobs.ids) = 1 then format('job %s uses them', v_jobs.ids[1])
                                        else format('jobs %s%s use them', array_to_string(v_jobs.ids[1:5], ', '),
                                                    case when cardinality(v_jobs.ids) > 5
                                                         then format(' and %s more', cardinality(v_jobs.ids) - 5) else '' end) end,
                                   coalesce('the first ends by ' || _iso(v_jobs.ends[1]), 'none has a time limit')) end;
        until := case when l.need <= l.most and isfinite(v_jobs.opens) then greatest(v_jobs.opens, p_now) end;
        return next;
        for i in 1 .. least(16, coalesce(cardinality(v_jobs.ids), 0)) loop
            job_id := v_jobs.ids[i];  gpus := v_jobs.gpus[i];
            until := case when isfinite(v_jobs.ends[i]) then v_jobs.ends[i] end;
            "text" := format('job %s has %s GPUs of this limit%s', job_id, gpus, coalesce(' until ' || _iso(until), ', with no time limit'));
            return next;
        end loop;
    end loop;
end;
$$;
