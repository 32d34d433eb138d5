-- odc._repair_arrays: recount the running tasks of live arrays, and how many of their tasks may start. Of more than
-- p_most arrays it checks a part, the next one in the next minute, because others wait for the turn.
-- Returns    one sentence per corrected row
-- Locks      the caller holds the turn; array_job and pending rows that differ
create or replace function odc._repair_arrays(p_now timestamptz, p_most integer default 10000)
returns text[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_told  text[];
    v_live  bigint[];
    v_jobs  bigint[];
    v_opens integer[];
begin
    select c.sentences, c.live into v_told, v_live from _recount_arrays(p_now, p_most) as c;
    select array_agg(p.job_id order by p.job_id), array_agg(p.open_count order by p.job_id)
      into v_jobs, v_opens
      from pending as p where p.array_job_id = any (v_live);
    perform _refresh_open_counts(v_live);
    return v_told || array(
        select format('job %s: %s tasks could start; corrected to %s', p.job_id, o.was, p.open_count)
          from unnest(v_jobs, v_opens) as o (job_id, was)
          join pending as p on p.job_id = o.job_id
         where p.open_count <> o.was
         order by p.job_id);
end;
$$;
