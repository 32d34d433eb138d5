-- odc._notification_kinds: what users can be notified of; the first ten are Slurm's mail types.
create or replace function odc._notification_kinds()
returns text[]
language sql immutable as $$
    select '{begin,end,fail,requeue,invalid_depend,stage_out,time_limit,time_limit_90,time_limit_80,time_limit_50,
             array_tasks,expiry,drain}'::text[]
$$;
