-- odc._live_filters: the conditions of a list of live jobs, as SQL text about l, a row of odc.running or odc.pending.
-- Arguments  p_filters  as in odc.list_jobs; only keys are read here, their values stay in the query's $1
-- Returns    joined   an additional join of the query: only filters by name need the wide table
--            running, pending  the conditions of either
create or replace function odc._live_filters(p_filters jsonb, out joined text, out running text, out pending text)
language sql immutable as $$
    select case when p_filters ?| '{user,name,text}' then 'join odc.job as j on j.id = l.job_id' else '' end,
           concat_ws(' and ', c.of_all,
               case when p_filters ? 'state' then '$1 -> ''state'' ? l.state::text' end,
               case when p_filters ? 'partition' then
                   'l.partition_id in (select t.id from odc.partition as t where $1 -> ''partition'' ? t.name)' end),
           concat_ws(' and ', c.of_all,
               case when p_filters ? 'state' then '$1 -> ''state'' ? ''PENDING''' end,
               case when p_filters ? 'partition' then
                   'l.shape_id in (select s.id from odc.shape as s join odc.partition as t on t.id = any (s.partition_ids) '
                   'where $1 -> ''partition'' ? t.name)' end)
      from odc._filter_sql(p_filters, 'l.job_id', 'l.account_id', 'l.qos_id') as c (of_all)
$$;
