-- odc._build_waiters: the pending reservations that use this build.
create or replace function odc._build_waiters(p_build_id bigint)
returns setof bigint
language sql stable as $$
    select v.job_id from odc.reservation as v join odc.pending as p on p.job_id = v.job_id where v.build_id = p_build_id order by v.job_id
$$;
