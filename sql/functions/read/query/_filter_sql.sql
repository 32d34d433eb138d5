-- odc._filter_sql: the conditions of a list that apply to every kind of job.
-- Arguments  p_filters                  as in odc.list_jobs; only keys are read here, their values stay in the query's $1
--            p_id, p_account, p_qos     the columns' SQL; user and name are of odc.job as j
create or replace function odc._filter_sql(p_filters jsonb, p_id text, p_account text, p_qos text)
returns text
language sql immutable as $$
    select coalesce(string_agg(format(c.condition, c.operand), ' and '), 'true')
      from (values
          ('ids', p_id, '%s in (select r.job_id from jsonb_to_recordset($1 -> ''ids'') as s (job_id bigint, tasks int4multirange), '
                        'lateral odc.resolve_jobs(s.job_id, s.tasks) as r)'),
          ('job_ids', p_id, '%s in (select i::bigint from jsonb_array_elements_text($1 -> ''job_ids'') as i)'),
          ('ended_since', '', 'j.ended_at >= ($1 ->> ''ended_since'')::timestamptz%s'),
          ('ended_before', '', 'j.ended_at < ($1 ->> ''ended_before'')::timestamptz%s'),
          -- The operator ? accepts one user as a string or a list of users.
          ('user', '', '$1 -> ''user'' ? j.user_name%s'),
          ('name', '', '$1 -> ''name'' ? j.name%s'),
          ('text', '', '(strpos(lower(j.name), lower($1 ->> ''text'')) > 0 or strpos(lower(j.user_name), lower($1 ->> ''text'')) > 0 '
                       'or strpos(lower(coalesce(j.comment, '''')), lower($1 ->> ''text'')) > 0%s)'),
          ('account', p_account, '%s in (select id from odc.account where $1 -> ''account'' ? name)'),
          ('qos', p_qos, '%s in (select id from odc.qos where $1 -> ''qos'' ? name)')
      ) as c (key, operand, condition)
     where p_filters ? c.key
$$;
