-- odc._hold_disks: jobs that start take their disks. Each gets the intent of a volume in the zone of the node that has
-- rank 0. The volume is made from the newest completed snapshot; for a clone that was never used, from the original's
-- snapshot.
-- Locks      the caller holds the turn; disk
-- Raises     OD003 PlanStale: a disk is no longer free
create or replace function odc._hold_disks(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_wanted bigint[] := array(select v.disk_id from reservation as v where v.job_id = any (p_job_ids) and v.disk_id is not null);
    v_taken  integer;
begin
    insert into shared_storage (uid, user_name, asked_at, due_at)
    select distinct on (j.uid) j.uid, j.user_name, p_now, p_now
      from reservation as v join job as j on j.id = v.job_id
     where v.job_id = any (p_job_ids) and v.ask -> 'shared_storage' = 'true'
        on conflict do nothing;
    if v_wanted = '{}' then
        return;
    end if;
    with taken as (
        update disk as d set holder = v.job_id, fence = d.fence + 1, used_at = p_now
          from reservation as v
         where v.job_id = any (p_job_ids) and d.id = v.disk_id and d.holder is null and d.deleted_at is null and d.trouble is null
        returning d.*
    ), intent as (
        insert into disk_volume (disk_id, job_id, attempt, fence, zone, size_gib, snapshot_id, state_at, made_at, due_at)
        select t.id, t.holder, r.attempt, t.fence, n.zone, greatest(t.size_gib, s.size_gib), s.id, p_now, p_now, p_now
          from taken as t
          join running as r on r.job_id = t.holder
          join allocation as a on a.job_id = r.job_id and a.rank = 0
          join node as n on n.id = a.node_id
          left join lateral (
               select l.id, l.size_gib from disk_snapshot as l
                where l.state = 'completed' and (l.disk_id = t.id or l.id = t.origin)
                order by l.disk_id = t.id desc, l.id desc limit 1) as s on true
        returning 1
    )
    select count(*) into v_taken from intent;
    if v_taken <> cardinality(v_wanted) then
        raise exception using errcode = 'OD003',
            message = 'a disk has been taken since the plan was made', hint = 'The plan is stale; the next pass makes a new one.';
    end if;
    perform _judge_needs(v_wanted, p_now);
end;
$$;
