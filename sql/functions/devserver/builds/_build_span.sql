-- odc._build_span: how long a build should take: the median of the last completed builds.
create or replace function odc._build_span()
returns interval
language sql stable as $$
    select coalesce(percentile_cont(0.5) within group (order by b.ended_at - b.started_at), interval '5 minutes')
      from (select l.started_at, l.ended_at from odc.build as l where l.state = 'completed' and l.started_at is not null
             order by l.ended_at desc limit 20) as b
$$;
