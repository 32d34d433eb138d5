-- odc._jupyter_state: the state of an active reservation's Jupyter Lab; null: there is none, and none is wanted.
create or replace function odc._jupyter_state(p_asked odc.reservation, p_attempt integer)
returns table (state text, error text)
language sql stable as $$
    select case when b.error is not null then 'failed'
                when w.wanted and b.running then 'running'
                when w.wanted then 'starting'
                when b.running then 'ending' end,
           b.error
      from (select coalesce(p_asked.ask -> 'jupyter' = 'true', false) as wanted) as w
      left join odc.box_jupyter as b on b.job_id = p_asked.job_id and b.attempt = p_attempt and (b.running or not w.wanted)
$$;
