-- odc._limit_gives: when running jobs give back what they use of limits and licences. Their ends are those that
-- _plan_releases expects.
-- Arguments  p_wanted …  as for _limit_users
-- Returns    gives: two values per limit and moment, by limit, in order of time: microseconds from p_now, amount
--            counts: per limit: how many values
create or replace function odc._limit_gives(
    p_now timestamptz, p_wanted integer[], p_scopes text[], p_scope_ids integer[], p_pers text[], p_whats text[],
    p_accounts integer[], p_uids integer[], out gives bigint[], out counts integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_other jsonb := nullif(current_setting('odc.other_end', true), '')::jsonb;     -- see _plan_releases
    v_job   bigint := coalesce((v_other ->> 'job_id')::bigint, 0);
    v_end   timestamptz := (v_other ->> 'ends_at')::timestamptz;
begin
    with give as (
        select u.bucket, u.amount,
               case when r.intent is not null and r.preempted_by is null then 1000000
                    else greatest(1000000, (date_part('epoch', e.ends_at - p_now) * 1000000)::bigint) end as at
          from _limit_users(p_wanted, p_scopes, p_scope_ids, p_pers, p_whats, p_accounts, p_uids) as u
          join running as r on r.job_id = u.job_id
         cross join lateral (
               select case when r.job_id = v_job then v_end when r.preempted_by is not null then least(r.ends_at, r.kill_at)
                           else r.ends_at end as ends_at) as e
         where e.ends_at < 'infinity' or r.intent is not null and r.preempted_by is null
    ), total as (
        select w.bucket, w.ord, g.at, sum(g.amount)::bigint as amount
          from unnest(p_wanted) with ordinality as w (bucket, ord)
          left join give as g on g.bucket = w.bucket
         group by w.bucket, w.ord, g.at
    )
    select coalesce((select array_agg(v.value order by t.ord, t.at, v.o)
                       from total as t cross join lateral unnest(array[t.at, t.amount]) with ordinality as v (value, o)
                      where t.at is not null), '{}'),
           array_agg(c.values order by c.ord)
      into gives, counts
      from (select t.ord, 2 * count(t.at)::integer as values from total as t group by t.ord) as c;
end;
$$;
