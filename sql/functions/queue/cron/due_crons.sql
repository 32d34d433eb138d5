-- odc.due_crons: occurrences that are due. Several that one entry has missed are one.
-- Arguments  p_limit  at most this many
-- Returns    the oldest first. request: the command line to submit; null: the last job of the entry is still pending or
--            running
create or replace function odc.due_crons(p_limit integer, p_now timestamptz)
returns table (id bigint, due_at timestamptz, uid integer, gid integer, user_name text, line integer, zone text, request jsonb)
language sql stable as $$
    select e.id, e.next_at, e.uid, t.gid, t.user_name, e.line, e.zone,
           case when odc._live_cron_job(e.last_job_id) is null then e.request end
      from odc.cron_entry as e
      join odc.cron_table as t on t.uid = e.uid
     where e.next_at <= p_now
     order by e.next_at, e.id
     limit p_limit
$$;
