-- odc.tidy_outbox: give up what could not be sent for too long, and delete what is old.
-- Arguments  p_give_up_before  created before this moment and still not sent: given up, an event
--            p_forget_before   created before this moment, and sent or given up: deleted
--            p_limit           rows of each kind
-- Returns    channels of those given up; whether there may be more to do
-- Locks      term for share; the rows; job_mail rows of jobs that ended before p_forget_before
-- Raises     OD020 LeadershipLost
create or replace function odc.tidy_outbox(
    p_term bigint, p_give_up_before timestamptz, p_forget_before timestamptz, p_limit integer, p_now timestamptz,
    out given_up text[], out more boolean)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_ids  bigint[];
    v_gone integer;
begin
    perform _hold_term(p_term);
    select array_agg(o.id order by o.id), coalesce(array_agg(o.channel order by o.id), '{}') into v_ids, given_up
      from (select x.id, x.channel from outbox as x
             where x.next_at is not null and x.created_at < p_give_up_before order by x.id limit p_limit) as o;
    with gone as (
        update outbox as o
           set next_at = null, failed_at = p_now, trouble = coalesce(o.trouble, 'it was not tried')
         where o.id = any (v_ids)
        returning o.id, o.user_name, o.job_id, o.channel, o.kind, o.trouble
    )
    insert into event (at, kind, actor, job_id, detail)
    select p_now, 'notification_failed', 'odcd', g.job_id,
           jsonb_build_object('user', g.user_name, 'channel', g.channel, 'kind', g.kind, 'why', g.trouble)
      from gone as g order by g.id;
    delete from outbox as o
     where o.id = any (array(select x.id from outbox as x
                              where x.created_at < p_forget_before and x.next_at is null order by x.created_at limit p_limit));
    get diagnostics v_gone = row_count;
    more := v_gone = p_limit or cardinality(given_up) = p_limit;
    delete from notify_use as u where u.hour < p_forget_before;
    delete from job_mail as m
     where m.job_id = any (array(
           select x.job_id from job_mail as x
             left join job as j on j.id = x.job_id
             left join array_job as a on a.job_id = x.job_id
            where j.id is null
               or j.ended_at < p_forget_before and (a.job_id is null or a.ended_ok + a.ended_not_ok >= a.task_count)
            limit p_limit));
end;
$$;
