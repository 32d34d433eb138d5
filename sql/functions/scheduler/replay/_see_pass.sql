-- odc._see_pass: make the views of schema odc_past show the state that a pass read, for the rest of the transaction.
-- Arguments  p_own  also show what the pass itself wrote
create or replace function odc._see_pass(p_pass odc.pass, p_own boolean)
returns void
language sql volatile as $$
    select set_config('odcd.past_at', p_pass.at::text, true), set_config('odcd.past_snapshot', p_pass.snapshot::text, true),
           set_config('odcd.past_own', case when p_own then p_pass.xid::text else '' end, true);
$$;
