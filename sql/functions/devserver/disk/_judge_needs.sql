-- odc._judge_needs: check again what these pending jobs cannot start without; jobs that lack nothing become ready.
-- Level triggered: it reads the current state, so it may be called at any time.
-- Arguments  p_disk_ids  the disks that may have changed; null: all that jobs wait for
--            p_job_ids   jobs whose own conditions may have changed
-- Returns    whether a job now lacks something else, or expects it at another time
-- Locks      the caller holds the turn; pending rows that change
create or replace function odc._judge_needs(p_disk_ids bigint[], p_now timestamptz, p_job_ids bigint[] default '{}')
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_changed boolean;
begin
    with changed as (
        update pending as p
           set lacks = n.lacks, lacks_until = n.until, lacks_text = w.text, lacks_job = w.job_id,
               eligible_at = case when n.lacks is null and p.held is null and p.begun and p.dependency = 'met'
                                  then coalesce(p.eligible_at, p_now) else p.eligible_at end
          from _need_verdicts(coalesce(p_disk_ids, array(
                   select distinct v.disk_id from reservation as v
                     join pending as q on q.job_id = v.job_id where v.disk_id is not null)), p_job_ids, p_now) as n
          left join lateral (select l.text, l.job_id from _why_lacking(n.job_id, n.lacks) as l limit 1) as w on true
         where p.job_id = n.job_id
           and ((p.lacks, p.lacks_text, p.lacks_job) is distinct from (n.lacks, w.text, w.job_id)
                -- The expected time always varies a little.
                or (p.lacks_until is null) <> (n.until is null) or abs(extract(epoch from p.lacks_until - n.until)) > 60)
        returning 1
    )
    select exists (select from changed) into v_changed;
    return v_changed;
end;
$$;
