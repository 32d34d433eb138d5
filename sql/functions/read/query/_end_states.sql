-- odc._end_states: the states a job ends in.
create or replace function odc._end_states()
returns text[]
language sql immutable as $$
    select array_agg(s::text) from unnest(enum_range('COMPLETED'::odc.job_state, null)) as s
$$;
