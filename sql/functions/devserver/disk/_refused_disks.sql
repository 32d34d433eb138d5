-- odc._refused_disks: reservations whose disk does not exist or cannot be used. A disk in use is not refused but waited
-- for.
-- Arguments  p_heads, p_jobs, p_requests  as submit_jobs has them
-- Returns    the position (from 1) of a job that cannot be accepted, and why
create or replace function odc._refused_disks(p_heads jsonb[], p_jobs jsonb[], p_requests integer[], p_now timestamptz)
returns table ("position" integer, code text, message text, hint text)
language sql stable as $$
    select j.n::integer, case when d.id is not null then 'OD012' when g.purge_at is not null then 'OD037' else 'OD036' end,
           case when d.id is not null then format('disk "%s" cannot be used: %s', a.name, d.trouble)
                when g.purge_at is not null then format('disk "%s" was deleted', a.name)
                else format('you have no disk "%s"', a.name) end,
           case when d.id is not null then 'Contact an operator, or use another disk.'
                else format('`odcctl disk list` shows the disks; `odcctl disk create %s` makes this one.', a.name) end
      from unnest(p_jobs, p_requests) with ordinality as j (job, request, n)
      join unnest(p_heads) with ordinality as h (head, n) on h.n = j.request + 1
     cross join lateral (select j.job -> 'reservation' ->> 'disk' as name, (h.head ->> 'uid')::integer as uid) as a
      left join odc.disk as d on d.uid = a.uid and d.name = a.name and d.deleted_at is null
      left join lateral (
           select o.purge_at from odc.disk as o
            where o.uid = a.uid and o.name = a.name and o.deleted_at is not null and o.purge_at > p_now
            order by o.id desc limit 1) as g on true
     where a.name is not null and (d.id is null or d.trouble is not null)
$$;
