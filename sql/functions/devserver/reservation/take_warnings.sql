-- odc.take_warnings: the active reservations whose users are to be warned of the end, or informed that it moved to a
-- later time. Each level is due once per end. If several are due, only the last is sent; levels before the end was set
-- are skipped.
-- Returns    a row per reservation and notice: minutes: the level; null: the end moved, so older warnings are no longer
--            true. shared_home: its home folder is shared with its user's other reservations. Returned until
--            note_warned is called
-- Locks      term for share; reservation_warning
-- Raises     OD020 LeadershipLost
create or replace function odc.take_warnings(p_term bigint, p_now timestamptz)
returns table (job_id bigint, attempt integer, name text, minutes integer, expires_at timestamptz, extensible boolean, shared_home boolean)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _hold_term(p_term);
    insert into reservation_warning (job_id, expires_at, minutes, due_at)
    select distinct on (w.job_id) w.job_id, w.expires_at, w.minutes, w.due_at
      from _warning_levels() as w
     where w.due_at <= p_now
     order by w.job_id, w.minutes
        on conflict do nothing;
    return query
        select v.job_id, r.attempt, j.name, w.minutes, v.expires_at, v.extensions = 0, coalesce(j.options -> 'pty' = 'true', false)
          from reservation as v
          join running as r on r.job_id = v.job_id and r.state = 'RUNNING' and r.intent is null
          join job as j on j.id = v.job_id
         cross join lateral (
               select min(w.minutes) as minutes, (array_agg(w.sent_at order by w.minutes))[1] as sent_at
                 from reservation_warning as w where w.job_id = v.job_id and w.expires_at = v.expires_at) as w
         where v.launched_at is not null and (v.stale_files or w.minutes is not null and w.sent_at is null)
         order by v.job_id;
end;
$$;
