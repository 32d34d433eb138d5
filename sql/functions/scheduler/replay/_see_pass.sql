-- odc._see_pass: let the views of schema odc_past show what a pass saw, for the rest of the transaction.
-- Arguments  p_own  and what it wrote itself
create or replace function odc._see_pass(p_pass odc.pass, p_own boolean)
returns void
language sql volatile as $$
    select set_config('odcd.past_at', p_pass.at::text, true), set_config('odcd.past_snapshot', p_pass.snapshot::text, true),
           set_config('odcd.past_own', case when p_own then p_pass.xid::text else '' end, true);
$$;
