-- odc._seen_intent: why a reservation that runs is to end, as its user sees it: requeue, if its start failed and it will be tried
-- again.
-- Arguments  p_intent  the intent of its row in running; null: it is not to end, or does not run
create or replace function odc._seen_intent(p_job_id bigint, p_intent odc.end_intent)
returns odc.end_intent
language sql stable as $$
    select case when p_intent in ('member_failed', 'node_fail')
                     and (select v.again from odc._attempt_verdicts(array[p_job_id]) as v)
                then 'requeue' else p_intent end
$$;
