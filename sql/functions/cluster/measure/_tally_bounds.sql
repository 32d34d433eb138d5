-- odc._tally_bounds: the upper bounds of a histogram's buckets, in seconds. Stored counts depend on them: other bounds
-- need a new metric name.
create or replace function odc._tally_bounds(p_metric text)
returns integer[]
language sql immutable as $$
    select case p_metric
        when 'odcd_job_queue_wait_seconds' then
            '{1,10,60,300,900,1800,3600,7200,14400,28800,86400,172800,604800}'::integer[]
        else '{1,2,5,10,20,30,60,120,300,600,1800,3600,14400,28800,86400}'::integer[] end
$$;
