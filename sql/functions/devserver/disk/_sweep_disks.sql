-- odc._sweep_disks: release old snapshots: those of disks deleted 30 days ago, and all but the newest three of a disk.
-- The newest snapshot of a disk stays, and so does one that a clone or a volume in creation is made from.
-- Locks      the caller holds the turn; disk_snapshot, pending
create or replace function odc._sweep_disks(p_now timestamptz)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_kept constant integer := 3;
begin
    if not exists (select from disk) then
        return false;
    end if;
    update disk_snapshot as s set state = 'deleting', due_at = p_now
      from (select n.id, row_number() over (partition by n.disk_id order by n.id desc) as place, d.purge_at
              from disk_snapshot as n join disk as d on d.id = n.disk_id
             where n.state = 'completed') as n
     where s.id = n.id and (n.purge_at <= p_now or n.purge_at is null and n.place > v_kept)
       and not exists (select from disk_volume as v where v.snapshot_id = s.id and v.state = 'creating')
       and not exists (select from disk as c
                        where c.origin = s.id and (c.purge_at is null or c.purge_at > p_now)
                          and not exists (select from disk_snapshot as o where o.disk_id = c.id and o.state = 'completed'));
    -- A holder without a volume that neither waits nor runs is unknown: the database was restored from a backup.
    update disk as d set holder = null
     where d.holder is not null and not exists (select from running as r where r.job_id = d.holder)
       and not exists (select from disk_volume as v where v.disk_id = d.id and v.state not in ('deleting', 'deleted', 'lost'));
    return _judge_needs(null, p_now);
end;
$$;
