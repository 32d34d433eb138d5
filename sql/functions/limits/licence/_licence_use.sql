-- odc._licence_use: every licence, and how many of it running jobs use.
create or replace function odc._licence_use()
returns table (name text, total integer, used bigint)
language sql stable as $$
    select l.name, l.total, coalesce(u.used, 0)::bigint
      from odc.licence as l
      left join (
          select n.name, sum(n.value::bigint * r.jobs)::bigint as used
            from odc.shape as s
            join odc.running_use as r on r.shape_id = s.id
           cross join lateral jsonb_each_text(s.licences) as n (name, value)
           where s.licences is not null
           group by n.name) as u on u.name = l.name
$$;
