-- odc._judge_launches: find groups whose launches failed, or for which AWS has launched nothing for long. They give up what
-- is missing, and other groups are tried until retry_at.
-- Arguments  p_groups  as see_groups
create or replace function odc._judge_launches(p_groups jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_patience constant interval := '5 minutes';
    v_name     text;
    v_failure  text;
begin
    update elastic_group as g
       set short_since = case when g.desired <= c.there then null
                              when g.short_since is null or c.came then p_now
                              else g.short_since end
      from (select h.name, count(i.instance_id) as there,
                   coalesce(bool_or(i.seen_at = p_now), false) as came
              from elastic_group as h left join elastic_instance as i on i.group_name = h.name group by h.name) as c
     where c.name = g.name and (g.short_since is not null or g.desired > c.there);
    for v_name, v_failure in
        select g.name, coalesce(s.failure, format('AWS launched no instance within %s minutes',
                                                  (extract(epoch from v_patience) / 60)::integer))
          from elastic_group as g join _seen_groups(p_groups) as s on s.name = g.name
         where g.short_since <= p_now - v_patience
            or g.short_since is not null and s.failed_at >= g.grown_at and (g.retry_at is null or s.failed_at > g.retry_at)
         order by g.name
    loop
        perform _fail_launch(v_name, v_failure, p_now);
        update elastic_group as g
           set short_since = p_now, wanted_at = p_now,
               wanted = nullif(greatest(g.min_nodes, (select count(*) from elastic_instance as i where i.group_name = g.name)::integer),
                               g.desired)
         where g.name = v_name;
    end loop;
end;
$$;
