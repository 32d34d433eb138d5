-- odc._passes_filters: does a job that was named by its id also match the filters given with it?
-- Arguments  p_filters  as of odc._find_jobs; its ids and job_ids are not looked at
create or replace function odc._passes_filters(p_job_id bigint, p_filters jsonb)
returns boolean
language sql stable as $$
    select (not p_filters ? 'user' or j.user_name = any (odc._words(p_filters -> 'user')))
       and (not p_filters ? 'name' or j.name = any (odc._words(p_filters -> 'name')))
       and (not p_filters ? 'account' or a.name = any (odc._words(p_filters -> 'account')))
       and (not p_filters ? 'qos' or q.name = any (odc._words(p_filters -> 'qos')))
       and (not p_filters ? 'state'
            or coalesce(j.state, r.state, 'PENDING')::text = any (odc._words(p_filters -> 'state')))
       and (not p_filters ? 'partition' or exists (
               select from odc.partition as t
                where t.name = any (odc._words(p_filters -> 'partition'))
                  and (t.id = coalesce(r.partition_id, j.partition_id)
                       or coalesce(r.partition_id, j.partition_id) is null and t.id = any (j.partition_ids))))
      from odc.job as j
      join odc.account as a on a.id = j.account_id
      join odc.qos as q on q.id = j.qos_id
      left join odc.running as r on r.job_id = j.id
     where j.id = p_job_id
$$;
